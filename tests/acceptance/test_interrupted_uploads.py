"""`svc upload` in each of its modes duplicates nothing, also when it is run again after it was killed."""

from tests.acceptance.installations import Finished, Installation, wait_until
from tests.acceptance.proxies import held
from tests.acceptance.sync_folders import fill, list_held

BUCKET = "handbook"


def _upload(installation: Installation, *words: str) -> Finished:
    return installation.svc("upload", *words, "-b", BUCKET, "--json")


def _outcome(finished: Finished, *names: str) -> tuple[int, ...]:
    """Return the exit code, and how many files had each of these outcomes."""
    return finished.exit, *(finished.json["counts"][name] for name in names)


def _received(installation: Installation) -> int:
    return sum(installation.part_sizes().values())


def _remove_all(installation: Installation) -> None:
    assert installation.svc("source", "rm", "--force", *(each["id"] for each in list_held(installation))).exit == 0


def test_killed_batch_upload_resumes_with_the_same_sessions(installation: Installation) -> None:
    fill(installation.root / "docs", 30, 50_000)
    with held(installation, 800_000, "upload", "docs", "-b", BUCKET):
        pass
    wait_until(lambda: _received(installation) > 300_000, "the first files")
    stored = _received(installation)
    sessions = set(installation.part_sizes())
    second = _upload(installation, "docs")
    assert _outcome(second, "created", "ready") == (0, 30, 30)
    total = sum(path.stat().st_size for path in (installation.root / "docs").rglob("*.md"))
    assert second.json["bytes_sent"] <= total - stored + 50_100
    (batch_id,) = second.json["batch_ids"]
    shown = installation.svc("batch", "show", batch_id, "--items", "--json").json
    assert sessions <= {item["session_id"] for item in shown["items"]}
    third = _upload(installation, "docs")
    assert (third.json["bytes_sent"], *_outcome(third, "unchanged"), len(list_held(installation))) == (0, 0, 30, 30)
    installation.assert_intact()


def test_upload_modes_one_session_and_batch_give_the_same_outcomes(installation: Installation) -> None:
    docs = installation.root / "docs"
    fill(docs, 3, 3000)
    for mode in ("one", "session", "batch"):
        first, second = _upload(installation, "docs", "--mode", mode), _upload(installation, "docs")
        assert (*_outcome(first, "ready"), len(first.json["batch_ids"])) == (0, 3, mode == "batch"), mode
        assert (*_outcome(second, "unchanged"), second.json["bytes_sent"]) == (0, 3, 0), mode
        _remove_all(installation)
        assert _outcome(_upload(installation, "docs", "--mode", mode), "ready") == (0, 3), mode
        for path in docs.rglob("*.md"):
            path.write_text(f"Words of {path.name} after {mode}.")
        swapped = _upload(installation, "docs", "--mode", mode, "--replace")
        assert (*_outcome(swapped, "replaced"), len(list_held(installation))) == (0, 3, 3), mode
        _remove_all(installation)


def test_default_rate_limits_reject_no_upload_of_a_folder(installation: Installation, large: bool) -> None:
    installation.stop()
    for name in ("SVC_LIMIT_CREATES_PER_SECOND", "SVC_LIMIT_BYTES_PER_MINUTE"):
        installation.environ.pop(name)
    installation.start()
    fill(installation.root / "docs", 2000 if large else 12, 100)
    assert _upload(installation, "docs", "--mode", "auto" if large else "one", "-j", "8").exit == 0

    def statuses() -> list[int | None]:
        return [line.get("fields", {}).get("status") for line in installation.log_lines()]

    wait_until(lambda: statuses().count(201) >= 12, "the log of all creates")
    assert 429 not in statuses()
