"""The main use: uploaded files become ready or fail with a reason, and are found until they are deleted."""

from pathlib import Path

import pytest

from tests.acceptance.calls import list_sources, search
from tests.acceptance.installations import Finished, Installation
from tests.corpus import Outcome, make_corpus

NOTES = b"# Ferries\n\nThe cobalt ferry of Hexley leaves at seven.\n"
OTHERS = b"# Orchards\n\nThe russet orchard of Garrowby is closed on Sundays.\n"


@pytest.mark.rule("service.kinds")
def test_first_command_starts_the_daemon_and_a_file_is_found_until_it_is_deleted(installation: Installation) -> None:
    installation.stop()
    (installation.root / "notes.md").write_bytes(NOTES)
    (installation.root / "others.md").write_bytes(OTHERS)
    uploaded = installation.svc("upload", "notes.md", "others.md", "-b", "handbook", "--json")
    assert (uploaded.exit, uploaded.stderr) == (0, "starting the daemon …\n")
    items = {item["path"]: item for item in uploaded.json["items"]}
    assert items["notes.md"]["ready"] is True
    assert installation.svc("daemon", "status", "--json").json["base_url"] == installation.base_url

    best = installation.svc("search", "cobalt ferry", "-b", "handbook", "--json").json["data"][0]
    assert (best["source_id"], best["filename"]) == (items["notes.md"]["source_id"], "notes.md")
    assert best["location"]["line_start"] is not None
    shown = installation.svc("search", "cobalt ferry", "-b", "handbook")
    assert [part for part in ("notes.md", "cobalt ferry of Hexley") if part not in shown.stdout] == []
    assert (shown.exit, "\x1b" in shown.stdout + shown.stderr) == (0, False)

    assert installation.svc("source", "rm", best["source_id"], "--force", "--json").exit == 0
    after = installation.svc("search", "cobalt ferry", "-b", "handbook", "--json").json["data"]
    assert best["source_id"] not in [hit["source_id"] for hit in after]


def _outcomes(finished: Finished) -> dict[str, tuple[Outcome, str | None]]:
    """Return the outcome of each file by path, with the error code if it failed."""
    outcomes = {}
    for item in finished.json["items"]:
        failed = Outcome.SKIPPED if item["action"] == "skipped" else Outcome.FAILED
        code = item["error"]["code"] if item["error"] and failed is Outcome.FAILED else None
        outcomes[item["path"]] = (Outcome.READY if item["ready"] else failed, code)
    return outcomes


def test_upload_of_a_mixed_folder_reports_the_right_outcome_for_each_file(
    installation: Installation, large: bool
) -> None:
    made = {f"papers/{one.path}": one for one in make_corpus(installation.root / "papers", 500 if large else 40)}
    first = installation.svc("upload", "papers", "-b", "papers", "--json")
    outcomes = _outcomes(first)
    wanted = {path: one.outcome for path, one in made.items()}
    assert (first.exit, {path: outcome for path, (outcome, _) in outcomes.items()}) == (3, wanted)
    failed = {path: code for path, (_, code) in outcomes.items() if code}
    assert {path: code for path, code in failed.items() if code not in made[path].codes} == {}
    with installation.client() as client:
        before = {source["title"]: source["id"] for source in list_sources(client, "papers")}
        assert before.keys() == {path for path, one in made.items() if one.outcome is not Outcome.SKIPPED}
        for path, one in [(path, one) for path, one in made.items() if one.phrase][:20]:
            best = search(client, one.phrase, "papers")[0]
            assert (best["title"], best["location"]["page"]) == (path, one.page)

    second = installation.svc("upload", "papers", "-b", "papers", "--json")
    assert (second.exit, second.json["bytes_sent"]) == (3, 0)
    with installation.client() as client:
        assert {source["title"]: source["id"] for source in list_sources(client, "papers")} == before
    # The table names each file that failed, with its error code.
    shown = installation.svc("upload", "papers", "-b", "papers")
    table = shown.stdout + shown.stderr
    assert (shown.exit, "Traceback" in table) == (3, False)
    for path, code in failed.items():
        assert (Path(path).name in table, code in table) == (True, True), path
