"""A sync removes no source if files only seem to be deleted; it reports the reason or stops."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance import sync_folders
from tests.acceptance.installations import Installation
from tests.acceptance.sync_folders import (
    BUCKET,
    WITHOUT_ROOTS_RIGHTS,
    counts,
    fill,
    items,
    list_held,
    moved_away,
    sync,
    titles,
    withheld,
    write,
)
from tests.acceptance.watches import watching
from tests.limits import small_disk

DETACH = ("--prune", "detach")
PRUNE = (*DETACH, "--name", "docs")


@pytest.fixture
def docs(installation: Installation) -> Path:
    """A synced folder of 40 files, whose bucket also has a document that was not uploaded by sync."""
    folder = fill(installation.root / "docs", 40)
    sync_folders.upload_outside_sync(installation)
    assert (sync(installation, *PRUNE).exit, len(titles(installation))) == (0, 41)
    return folder


def test_sync_of_a_missing_or_empty_folder_stops_and_removes_nothing(installation: Installation, docs: Path) -> None:
    ends: list[Callable[[Path], object]] = [lambda _: None, Path.mkdir, lambda root: root.write_text("not a folder")]
    before = list_held(installation)
    for number, end in enumerate(ends):
        with moved_away(docs):
            end(docs)
            stopped = sync(installation, *PRUNE, "--max-delete", "100%")
            foreseen = sync(installation, *PRUNE, verb="diff")
        assert (*stopped.failure, foreseen.exit) == (11, "svc_safety_stop", 11), number
        assert "40 files of it are in the bucket" in stopped.json["error"]["message"], number
        assert withheld(stopped) == [("ended_early", None, [])], number
        again = sync(installation, *PRUNE)
        assert (again.exit, counts(again)) == (0, {"unchanged": 40}), number
    sync_folders.forget(installation)
    with moved_away(docs):
        docs.mkdir()
        assert sync(installation, *PRUNE).exit == 11
    rules = write(docs, ".svcignore", "*\n")
    stopped = sync(installation, *PRUNE)
    assert stopped.exit == 11
    assert "nothing in it is sent (" in stopped.json["error"]["message"]
    rules.unlink()
    assert list_held(installation) == before


def test_first_sync_of_a_missing_folder_creates_no_bucket(installation: Installation) -> None:
    assert installation.svc("sync", "nothere", "-b", "typo", "--json").failure == (5, "svc_path_not_found")
    assert installation.svc("bucket", "ls", "--json").json["buckets"] == []


def test_sync_with_more_deletions_than_the_limit_stops_until_max_delete_allows_them(
    installation: Installation, docs: Path
) -> None:
    for path in sorted(docs.rglob("*.md"))[:12]:
        path.unlink()
    stopped = sync(installation, *PRUNE)
    error = stopped.json["error"]
    assert (stopped.exit, error["details"]) == (11, {"gone": 12, "owned": 40})
    assert error["message"] == "12 of 40 files are gone, more than 25 %; nothing was removed."
    assert error["hint"] == "if that is right, run `svc sync` with --max-delete 12."
    assert withheld(stopped) == [("too_many", 12, [])]
    assert counts(stopped) == {"gone": 12, "unchanged": 28}, "not every deleted file is reported"
    planned = sync(installation, *PRUNE, "--max-delete", "12", "--dry-run")
    assert (counts(planned), len(titles(installation))) == ({"detached": 12, "unchanged": 28}, 41)
    allowed = sync(installation, *PRUNE, "--max-delete", "12")
    assert (allowed.exit, counts(allowed)) == (0, {"detached": 12, "unchanged": 28})
    assert ("stranger.md" in (left := titles(installation)), len(left)) == (True, 29)


def test_newly_ignored_files_stay_in_the_bucket(installation: Installation, docs: Path) -> None:
    for pattern, left_out in [("*.md", 0), ("000/", 0), ("0*.md", 10)]:
        (docs / ".svcignore").write_text(f"{pattern}\n")
        finished = sync(installation, *PRUNE, "--max-delete", "100%")
        assert finished.exit == (0 if left_out else 11), "a folder without files to sync has to stop the sync"
        named = {item["source_id"] for item in finished.json["items"] if item["source_id"]}
        assert (len(named), len(titles(installation))) == (left_out, 41), f"not each kept source is reported: {pattern}"
        (docs / ".svcignore").unlink()
        again = sync(installation, *PRUNE)
        assert (counts(again), again.json["bytes_sent"]) == ({"unchanged": 40}, 0), pattern


def test_prune_detaches_or_deletes_only_sources_of_deleted_files_and_only_on_request(
    installation: Installation, docs: Path
) -> None:
    ids = {source["title"]: source["id"] for source in list_held(installation)}
    assert sync(installation, "--prune", "none").json["items"] == []
    assert installation.svc("bucket", "create", "other").exit == 0
    assert installation.svc("source", "attach", ids["000/07.md"], "-b", "other").exit == 0
    (docs / "000" / "07.md").unlink()
    left = sync(installation)
    assert (left.exit, counts(left), withheld(left)) == (0, {"unchanged": 39, "gone": 1}, [("prune_not_asked", 1, [])])
    assert left.json["notes"] == ["1 file is gone from the folder, but still in the bucket: --prune detach."]
    assert (len(titles(installation)), counts(sync(installation, *PRUNE))) == (41, {"detached": 1, "unchanged": 39})
    assert titles(installation, "other") == ["000/07.md"]
    (docs / "000" / "08.md").unlink()
    deleted = sync(installation, "--prune", "delete", "--name", "docs")
    assert (deleted.exit, counts(deleted)) == (0, {"deleted": 1, "unchanged": 38})
    with installation.client() as client:
        assert client.get(f"/v1/sources/{ids['000/08.md']}").status_code == 404
    # A folder with the name of a deleted file doesn't count as the file.
    (docs / "000" / "09.md").unlink()
    write(docs, "000/09.md/inside.md", "Words inside.")
    assert counts(sync(installation, *PRUNE)) == {"created": 1, "detached": 1, "unchanged": 37}
    gone = {"000/07.md", "000/08.md", "000/09.md"}
    assert set(titles(installation)) == (ids.keys() - gone) | {"000/09.md/inside.md"}


@pytest.mark.rule("trust.default-name")
def test_prune_for_another_folder_of_the_same_name_detaches_only_its_own_files(installation: Installation) -> None:
    for folder in ("a", "b"):
        write(installation.root / folder / "docs", f"{folder}.md", f"Words of {folder}.")
        write(installation.root / folder / "docs", f"{folder}-gone.md", f"Old words of {folder}.")
    assert sync(installation, *DETACH, folder="a/docs").exit == 0
    second = sync(installation, *DETACH, folder="b/docs")
    assert (second.exit, counts(second)) == (0, {"created": 2, "gone": 2})
    assert "nothing shows that this folder sent what is left" in second.json["notes"][0]
    assert withheld(second) == [("other_folder", 2, [])]
    (installation.root / "b" / "docs" / "b-gone.md").unlink()
    third = sync(installation, *DETACH, folder="b/docs")
    assert (third.exit, counts(third)) == (0, {"unchanged": 1, "detached": 1, "gone": 2})
    assert titles(installation) == ["a-gone.md", "a.md", "b.md"]


def test_sync_refuses_a_name_option_for_a_configuration_file_and_removes_nothing(installation: Installation) -> None:
    for folder in ("a", "b"):
        write(installation.root / folder, "svc.toml", f'[[map]]\ndir = "docs"\nbucket = "{BUCKET}"\nprune = "delete"\n')
        write(installation.root / folder / "docs", f"{folder}.md", f"Words of {folder}.")
        assert installation.svc("sync", "--all", "--json", cwd=installation.root / folder).exit == 0
    assert titles(installation) == ["a.md", "b.md"]
    refused = installation.svc("sync", "svc.toml", "--name", "docs", cwd=installation.root / "a")
    assert (refused.exit, "leave the folder out" in refused.stderr) == (2, True)


def test_sync_leaves_a_document_with_the_same_title_as_a_file_alone(installation: Installation) -> None:
    stranger = sync_folders.upload_outside_sync(installation, "a.md")
    folder = installation.root / "docs"
    write(folder, "a.md", "Words of ours.")
    assert counts(sync(installation, *PRUNE)) == {"created": 1}
    write(folder, "a.md", "Other words of ours.")
    assert counts(sync(installation, *PRUNE)) == {"updated": 1}
    write(folder, "b.md", "More.")
    (folder / "a.md").unlink()
    assert counts(sync(installation, *PRUNE)) == {"created": 1, "detached": 1}
    assert [source["id"] for source in list_held(installation) if source["title"] == "a.md"] == [stranger]


def test_two_mappings_in_one_bucket_do_not_affect_each_other(installation: Installation) -> None:
    for name in ("one", "two"):
        write(installation.root / name, "same.md", "The same words.")
        write(installation.root / name, "own.md", f"Words of {name}.")
        assert counts(sync(installation, *DETACH, folder=name)) == {"created": 2}
    (installation.root / "one" / "same.md").unlink()
    assert counts(sync(installation, *DETACH, folder="one")) == {"detached": 1, "unchanged": 1}
    assert counts(sync(installation, *DETACH, folder="two")) == {"unchanged": 2}
    assert titles(installation) == ["own.md", "own.md", "same.md"]


def test_files_of_a_folder_that_cannot_be_read_are_neither_gone_nor_left_out(installation: Installation) -> None:
    folder = fill(installation.root / "docs", 3)
    write(folder, "deep/in/a.md", "Words.")
    write(folder, "gone.md", "Other words.")
    assert sync(installation, *PRUNE).exit == 0
    (folder / "gone.md").unlink()
    (folder / "deep").chmod(0)
    words = ("sync", "docs", "-b", BUCKET, "--json", "--prune-left-out")
    finished = installation.run(sys.executable, "-c", WITHOUT_ROOTS_RIGHTS, *words)
    (folder / "deep").chmod(0o755)
    assert finished.failure == (3, "svc_file_unreadable")
    seen = {path: (item["action"], item["reason_code"]) for path, item in items(finished).items()}
    assert seen["deep/in/a.md"] == ("skipped", "folder_unreadable")
    assert "1 file is in the bucket, but can't be read here: nothing was changed." in finished.json["notes"]
    assert withheld(finished) == [("folder_unreadable", 1, ["deep/"])]
    assert "prune-left-out" not in " ".join(finished.json["notes"])
    assert titles(installation)[-2:] == ["deep/in/a.md", "gone.md"]


def test_unreadable_subfolder_prevents_detaching_and_moving_sources(installation: Installation) -> None:
    # Root can read everything, so a path that is too long to be opened makes the folder unreadable.
    folder = fill(installation.root / "docs", 15)
    assert sync(installation, *PRUNE).exit == 0
    here = os.open(folder, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=here)
        there = os.open("d" * 250, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = there
    os.close(here)
    (folder / "000" / "03.md").rename(folder / "elsewhere.md")
    finished = sync(installation, *PRUNE)
    assert finished.json["counts"]["detached"] == finished.json["counts"]["moved"] == 0
    assert "some folders could not be read" in " ".join(finished.json["notes"])
    assert [(code, files) for code, files, _ in withheld(finished)] == [("folder_unreadable", 1)]
    assert finished.failure == (3, "svc_file_unreadable")
    assert "000/03.md" in titles(installation)


def test_disk_that_is_missing_inside_the_folder_keeps_its_files_until_that_is_accepted(
    installation: Installation, docs: Path
) -> None:
    disk = docs / "archive"
    with small_disk(disk, "1m"):
        for number in range(3):
            write(disk, f"{number}.md", f"The archive has plover{number}.")
        assert counts(sync(installation, *PRUNE)) == {"created": 3, "unchanged": 40}
        (disk / "2.md").unlink()
        assert counts(sync(installation, *PRUNE)) == {"detached": 1, "unchanged": 42}, "the disk is not missing"
        # As long as a file is open, no other disk gets the device's number.
        held = (disk / "1.md").open()
    for words in ((*PRUNE, "--max-delete", "100%"), PRUNE):
        foreseen, stopped = sync(installation, *words, "--dry-run"), sync(installation, *words)
        assert (foreseen.exit, stopped.exit) == (0, 0)
        assert counts(foreseen) == counts(stopped) == {"gone": 2, "unchanged": 40}
        assert withheld(foreseen) == withheld(stopped) == [("disk_missing", 2, ["archive/"])]
        disk.rmdir() if disk.is_dir() else disk.mkdir()  # some systems remove the folder of an unmounted disk
    (docs / "000" / "00.md").unlink()
    assert counts(sync(installation, *PRUNE)) == {"detached": 1, "gone": 2, "unchanged": 39}
    with watching(installation, str(docs), "-b", BUCKET, *PRUNE):
        assert installation.svc("watch", "flush", "docs").exit == 0, "of a watched folder, this accepts only the root"
    assert counts(sync(installation, *PRUNE)) == {"gone": 2, "unchanged": 39}
    shutil.rmtree(disk, ignore_errors=True)
    with held, small_disk(disk, "1m"):
        replaced = sync(installation, *PRUNE)
        assert withheld(replaced) == [("disk_missing", 2, ["archive/"])]
        write(disk, "other.md", "Another disk has the snipe.")
    shutil.rmtree(disk, ignore_errors=True)
    accepted = sync(installation, *PRUNE, "--accept-root")
    assert (counts(accepted), withheld(accepted)) == ({"detached": 2, "unchanged": 39}, [])
