"""Sources of deleted files are removed despite a failing file, and each withheld removal is reported with its cause."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.installations import COMMAND_TIMEOUT_S, Installation, wait_until
from tests.acceptance.proxies import held
from tests.acceptance.sync_folders import BUCKET, counts, fill, found, items, sync, titles, unreadable, withheld, write
from tests.acceptance.watches import Watch, run_state, watching
from tests.samples import make_corrupt_docx, make_docx

PRUNE = ("--prune", "detach", "--name", "docs")


@pytest.fixture
def docs(installation: Installation) -> Path:
    """A synced folder with three ready documents and one that can't be indexed."""
    folder = installation.root / "docs"
    for name, text in (("a", "The aardvark digs."), ("b", "The badger sleeps all day."), ("c", "The crane flies.")):
        write(folder, f"{name}.md", text)
    write(folder, "scan.docx", make_corrupt_docx())
    assert counts(sync(installation, *PRUNE)) == {"created": 3, "failed": 1}
    return folder


def test_unreadable_document_does_not_keep_a_deleted_one_searchable(installation: Installation, docs: Path) -> None:
    for name, animal, prune, action, left in (
        ("a.md", "aardvark", "detach", "detached", 2),
        ("b.md", "badger", "delete", "deleted", 1),
    ):
        assert found(installation, animal)
        (docs / name).unlink()
        words = ("--prune", prune, "--name", "docs")
        foreseen, finished = sync(installation, *words, verb="diff"), sync(installation, *words)
        assert (foreseen.exit, counts(foreseen)) == (10, {action: 1, "unchanged": left, "failed": 1})
        assert (finished.exit, counts(finished)) == (3, counts(foreseen))
        assert items(finished)["scan.docx"]["error"]["code"] == "document_unreadable"
        assert withheld(foreseen) == withheld(finished) == []
        assert not found(installation, animal)
    with watching(installation, str(docs), "-b", BUCKET, *PRUNE) as watch:
        assert found(installation, "crane")
        write(docs, "d.md", "The dodo is gone.")
        watch.wait_for_item("created", "d.md")
        (docs / "d.md").unlink()
        watch.wait_for_item("detached", "d.md")
        assert run_state(installation, "docs")["withheld"] == []
    assert titles(installation) == ["c.md", "scan.docx"]


@pytest.fixture
def renamed(installation: Installation) -> Iterator[tuple[Path, Watch]]:
    """A watched folder in which a document was damaged and renamed, while its old version is still searchable."""
    folder = installation.root / "docs"
    write(folder, "old.docx", make_docx({"Animals": "The aardvark digs."}))
    with watching(installation, str(folder), "-b", BUCKET, *PRUNE) as watch:
        write(folder, "old.docx", make_corrupt_docx())
        watch.wait_for_item("failed", "old.docx")
        (folder / "old.docx").rename(folder / "new.docx")
        wait_until(lambda: run_state(installation, "docs").get("withheld"), "something is withheld", every_s=0.2)
        yield folder, watch


def _reports(watch: Watch) -> list[list[dict[str, object]]]:
    return [line["withheld"] for line in watch.lines if line["type"] == "watch.withheld"]


def test_withheld_removal_is_reported_everywhere_until_its_cause_is_gone(
    installation: Installation, renamed: tuple[Path, Watch]
) -> None:
    folder, watch = renamed
    (report,) = run_state(installation, "docs")["withheld"]
    assert (report["code"], report["files"], report["because"]) == ("replacement_not_ready", 1, ["new.docx"])
    assert report["message"].endswith("the same document is in the folder, but not searchable yet (new.docx).")
    assert _reports(watch) == [[report]]
    for words in (("watch", "status", "docs"), ("watch", "log", "docs"), ("sync", "docs", "-b", BUCKET, *PRUNE)):
        assert report["message"] in installation.svc(*words).stdout, words
    streamed = installation.svc("diff", "docs", "-b", BUCKET, "--ndjson", *PRUNE)
    lines = [line for line in map(json.loads, streamed.stdout.splitlines()) if line["type"] == "sync.withheld"]
    assert lines == [{"type": "sync.withheld", "mapping": "docs", **report}]
    assert found(installation, "aardvark")
    write(folder, "new.docx", make_docx({"Animals": "The badger sleeps."}))
    wait_until(lambda: watch.items("old.docx")[-1:] == [("detached", "old.docx")], "the old document is detached")
    wait_until(lambda: _reports(watch) == [[report], []], "the end of the withholding is reported")
    assert (run_state(installation, "docs")["withheld"], titles(installation)) == ([], ["new.docx"])


def test_unreadable_or_not_yet_indexed_file_withholds_removals_until_the_next_sync(
    installation: Installation, docs: Path
) -> None:
    # A file that can't be opened withholds only the removal of the source that it may be the moved file of.
    (docs / "a.md").rename(docs / "moved.md")
    (docs / "b.md").unlink()
    with unreadable(docs / "moved.md"):
        finished = sync(installation, *PRUNE)
    assert items(finished)["moved.md"]["error"]["code"] == "svc_file_unreadable"
    assert counts(finished) == {"detached": 1, "gone": 1, "unchanged": 1, "failed": 2}
    assert withheld(finished) == [("may_have_moved", 1, ["moved.md"])]
    assert titles(installation) == ["a.md", "c.md", "scan.docx"]
    again = sync(installation, *PRUNE)
    assert (counts(again), again.json["bytes_sent"]) == ({"moved": 1, "unchanged": 1, "failed": 1}, 0)
    # The sync doesn't wait until this document is indexed.
    (docs / "moved.md").unlink()
    write(docs, "d.docx", make_corrupt_docx() + b"otherwise")
    first, second = (sync(installation, *PRUNE, "--wait", "accepted") for _ in range(2))
    assert (withheld(first), counts(first).get("detached")) == ([("not_indexed", 1, ["d.docx"])], None)
    assert (withheld(second), counts(second)["detached"]) == ([], 1)


def test_interrupted_sync_reports_the_removals_that_it_has_not_done(installation: Installation) -> None:
    fill(installation.root / "docs", 100)
    words = (*PRUNE, "--max-delete", "99")
    assert counts(sync(installation, *words)) == {"created": 100}
    for path in sorted((installation.root / "docs").rglob("*.md"))[1:]:
        path.unlink()
    with held(installation, 9000, "sync", "docs", "-b", BUCKET, *words) as running:
        running.send_signal(signal.SIGINT)
        out, _ = running.communicate(timeout=COMMAND_TIMEOUT_S)
    report = json.loads(out)
    assert "counts" in report, (running.returncode, out)
    detached, gone = report["counts"]["detached"], report["counts"]["gone"]
    assert (running.returncode, detached + gone) == (130, 99)
    assert [(each["code"], each["files"]) for each in report["withheld"]] == [("ended_early", gone)]
    assert "the sync ended early" in report["withheld"][0]["message"]
