"""A folder of mixed real documents: what is ready, what failed and why, and nothing twice."""

from pathlib import Path
from typing import Any

from tests.acceptance.calls import list_sources, search
from tests.acceptance.installations import Finished, Installation
from tests.corpus import Made, Outcome, make_corpus


def test_a_mixed_folder_ends_with_a_true_word_about_each_file(installation: Installation, large: bool) -> None:
    made = make_corpus(installation.root / "papers", 500 if large else 60)
    first = installation.svc("upload", "papers", "-b", "papers", "--json")
    assert first.exit == 3
    assert _outcomes(first) == {f"papers/{one.path}": one.outcome for one in made}
    assert _wrong_codes(first, made) == {}
    with installation.client() as client:
        before = {source["title"]: source["id"] for source in list_sources(client, "papers")}
        assert sorted(before) == sorted(f"papers/{one.path}" for one in made if one.outcome is not Outcome.SKIPPED)
        for one in [one for one in made if one.phrase][:20]:
            best = search(client, one.phrase, "papers")[0]
            assert (best["title"], best["location"]["page"]) == (f"papers/{one.path}", one.page)

    second = installation.svc("upload", "papers", "-b", "papers", "--json")
    assert (second.exit, second.json["bytes_sent"]) == (3, 0)
    with installation.client() as client:
        assert {source["title"]: source["id"] for source in list_sources(client, "papers")} == before


def test_the_table_names_each_file_that_failed_and_why(installation: Installation) -> None:
    made = make_corpus(installation.root / "papers", 20)
    finished = installation.svc("upload", "papers", "-b", "papers")
    assert finished.exit == 3
    shown = finished.stdout + finished.stderr
    for one in made:
        if one.outcome is Outcome.FAILED:
            assert Path(one.path).name in shown
            assert any(code in shown for code in one.codes)
    assert "Traceback" not in shown


def _outcomes(finished: Finished) -> dict[str, Outcome]:
    return {item["path"]: _outcome(item) for item in finished.json["items"]}


def _outcome(item: dict[str, Any]) -> Outcome:
    if item["ready"]:
        return Outcome.READY
    return Outcome.SKIPPED if item["action"] == "skipped" else Outcome.FAILED


def _wrong_codes(finished: Finished, made: list[Made]) -> dict[str, str]:
    """Failed files whose reason is not one of those expected."""
    codes = {f"papers/{one.path}": one.codes for one in made}
    return {
        item["path"]: item["error"]["code"]
        for item in finished.json["items"]
        if _outcome(item) is Outcome.FAILED and item["error"]["code"] not in codes[item["path"]]
    }
