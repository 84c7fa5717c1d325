"""What looks like a deletion and is none: a sync removes nothing, and says so or stops."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from svc_cli.client.api import Client
from svc_cli.progress import Silent
from svc_cli.sync.mappings import Mapping
from svc_cli.sync.runs import SyncOptions
from svc_cli.sync.snapshots import Filters
from svc_cli.sync.syncs import sync as run_sync
from tests.acceptance.installations import Installation
from tests.acceptance.sync_folders import (
    BUCKET,
    assert_equal,
    counts,
    fill,
    forget,
    items,
    list_held,
    moved_away,
    put_stranger,
    sync,
    titles,
    withheld,
    write,
)

PRUNE = ("--prune", "detach", "--name", "docs")


@pytest.fixture
def docs(installation: Installation) -> Path:
    """A folder of 40 files that is in the bucket, beside a document of somebody else."""
    folder = installation.root / "docs"
    put_stranger(installation)
    fill(folder, 40)
    assert sync(installation, *PRUNE).exit == 0
    assert len(titles(installation)) == 41
    return folder


def _leave_missing(_: Path) -> None: ...


def _make_empty(folder: Path) -> None:
    folder.mkdir()


def _make_file(folder: Path) -> None:
    folder.write_text("not a folder")


@pytest.mark.parametrize("end", [_leave_missing, _make_empty, _make_file])
def test_a_root_that_is_not_there_stops_the_sync(
    installation: Installation, docs: Path, end: Callable[[Path], None]
) -> None:
    before = list_held(installation)
    with moved_away(docs):
        end(docs)
        stopped = sync(installation, *PRUNE, "--max-delete", "100%")
        foreseen = sync(installation, *PRUNE, verb="diff")
    assert (stopped.exit, stopped.json["error"]["code"]) == (11, "svc_safety_stop")
    assert "40 files of it are in the bucket" in stopped.json["error"]["message"]
    assert withheld(stopped) == [("ended_early", None, [])]
    assert foreseen.exit == 11
    assert list_held(installation) == before
    again = sync(installation, *PRUNE)
    assert (again.exit, counts(again)) == (0, {"unchanged": 40})


def test_an_emptied_root_stops_the_sync_without_local_state_too(installation: Installation, docs: Path) -> None:
    forget(installation)
    shutil.rmtree(docs)
    docs.mkdir()
    assert sync(installation, *PRUNE).exit == 11
    assert len(titles(installation)) == 41


def test_a_folder_that_never_was_makes_no_bucket(installation: Installation) -> None:
    finished = installation.svc("sync", "nothere", "-b", "typo", "--json")
    assert (finished.exit, finished.json["error"]["code"]) == (5, "svc_path_not_found")
    assert installation.svc("bucket", "ls", "--json").json["buckets"] == []


def test_more_deletions_than_allowed_stop_the_sync_until_they_are_allowed(
    installation: Installation, docs: Path
) -> None:
    for path in sorted(docs.rglob("*.md"))[:12]:
        path.unlink()
    stopped = sync(installation, *PRUNE)
    assert (stopped.exit, stopped.json["error"]["details"]) == (11, {"gone": 12, "owned": 40})
    assert withheld(stopped) == [("too_many", 12, [])]
    assert counts(stopped) == {"gone": 12, "unchanged": 28}, "each of them is named"
    assert len(titles(installation)) == 41
    planned = sync(installation, *PRUNE, "--max-delete", "12", "--dry-run")
    assert counts(planned) == {"detached": 12, "unchanged": 28}
    assert len(titles(installation)) == 41
    allowed = sync(installation, *PRUNE, "--max-delete", "12")
    assert (allowed.exit, counts(allowed)) == (0, {"detached": 12, "unchanged": 28})
    assert "stranger.md" in titles(installation)
    assert len(titles(installation)) == 29


def test_without_prune_what_is_gone_stays_and_is_said(installation: Installation, docs: Path) -> None:
    (docs / "000" / "00.md").unlink()
    finished = sync(installation)
    assert (finished.exit, counts(finished)) == (0, {"unchanged": 39, "gone": 1})
    assert finished.json["notes"] == ["1 files are gone here and still answer: --prune detach."]
    assert withheld(finished) == [("prune_not_asked", 1, [])]
    assert len(titles(installation)) == 41


@pytest.mark.parametrize(("pattern", "left_out"), [("*.md", 0), ("000/", 0), ("0*.md", 10)])
def test_a_broader_ignore_file_removes_nothing(
    installation: Installation, docs: Path, pattern: str, left_out: int
) -> None:
    (docs / ".svcignore").write_text(f"{pattern}\n")
    finished = sync(installation, *PRUNE, "--max-delete", "100%")
    assert finished.exit == (0 if left_out else 11), "with nothing left to sync it is as good as empty"
    named = {item["source_id"] for item in finished.json["items"] if item["source_id"]}
    assert len(named) == left_out, "each that still answers is named"
    assert len(titles(installation)) == 41
    (docs / ".svcignore").unlink()
    again = sync(installation, *PRUNE)
    assert (counts(again), again.json["bytes_sent"]) == ({"unchanged": 40}, 0)


def test_a_folder_that_took_a_files_place_is_not_the_file(installation: Installation, docs: Path) -> None:
    (docs / "000" / "07.md").unlink()
    write(docs, "000/07.md/inside.md", "Words inside.")
    assert counts(sync(installation, *PRUNE)) == {"created": 1, "detached": 1, "unchanged": 39}
    assert "000/07.md/inside.md" in titles(installation)
    assert "000/07.md" not in titles(installation)


def test_prune_delete_deletes_its_own_and_nobody_elses(installation: Installation, docs: Path) -> None:
    gone = items(sync(installation, "--prune", "none"))
    assert gone == {}
    victim = next(source for source in list_held(installation) if source["title"] == "000/07.md")
    (docs / "000" / "07.md").unlink()
    finished = sync(installation, "--prune", "delete", "--name", "docs")
    assert (finished.exit, counts(finished)) == (0, {"deleted": 1, "unchanged": 39})
    with installation.client() as client:
        assert client.get(f"/v1/sources/{victim['id']}").status_code == 404
    assert "stranger.md" in titles(installation)


def test_prune_detach_leaves_the_source_in_its_other_bucket(installation: Installation, docs: Path) -> None:
    victim = next(source for source in list_held(installation) if source["title"] == "000/07.md")
    assert installation.svc("bucket", "create", "other").exit == 0
    assert installation.svc("source", "attach", victim["id"], "-b", "other").exit == 0
    (docs / "000" / "07.md").unlink()
    assert counts(sync(installation, *PRUNE)) == {"detached": 1, "unchanged": 39}
    assert titles(installation, "other") == ["000/07.md"]


def test_a_file_that_fails_for_the_first_time_keeps_everything_from_being_removed(
    installation: Installation, docs: Path
) -> None:
    (docs / "000" / "07.md").unlink()
    write(docs, "broken.pdf", b"%PDF-1.7\nnothing that a PDF has")
    finished = sync(installation, *PRUNE)
    assert (finished.exit, finished.json["counts"]["gone"]) == (3, 1)
    assert "000/07.md" in titles(installation)
    assert withheld(finished) == [("newly_failed", 1, ["broken.pdf"])]
    assert finished.json["notes"][-1] == finished.json["withheld"][0]["message"]
    again = sync(installation, *PRUNE)
    assert (again.exit, counts(again)) == (3, {"detached": 1, "unchanged": 39, "failed": 1})
    assert withheld(again) == []


def test_another_folder_at_the_same_place_is_read_anew_and_prunes_nothing(
    installation: Installation, docs: Path
) -> None:
    with moved_away(docs):
        fill(docs, 35)
        (docs / "000" / "01.md").write_text("Other words.")
        finished = sync(installation, *PRUNE)
        assert (finished.exit, counts(finished)) == (0, {"updated": 1, "unchanged": 34, "gone": 5})
        assert any("another one than last time" in note for note in finished.json["notes"])
        assert withheld(finished) == [("folder_replaced", 5, [])]
        assert len(titles(installation)) == 41
        assert counts(sync(installation, *PRUNE)) == {"detached": 5, "unchanged": 35}
        shutil.rmtree(docs)


def test_another_folder_of_the_same_name_takes_out_only_what_was_seen_there(installation: Installation) -> None:
    for place in ("a", "b"):
        write(installation.root / place / "docs", f"{place}.md", f"Words of {place}.")
        write(installation.root / place / "docs", f"{place}-gone.md", f"Old words of {place}.")
    words = ("--prune", "detach")
    assert sync(installation, *words, folder="a/docs").exit == 0
    second = sync(installation, *words, folder="b/docs")
    assert (second.exit, counts(second)) == (0, {"created": 2, "gone": 2})
    assert "they came from elsewhere under this folder's name" in second.json["notes"][0]
    assert withheld(second) == [("other_folder", 2, [])]
    (installation.root / "b" / "docs" / "b-gone.md").unlink()
    third = sync(installation, *words, folder="b/docs")
    assert (third.exit, counts(third)) == (0, {"unchanged": 1, "detached": 1, "gone": 2})
    assert titles(installation) == ["a-gone.md", "a.md", "b.md"]


def test_a_folder_that_cannot_be_listed_takes_nothing_out_and_moves_nothing(installation: Installation) -> None:
    # Root reads everything, so the folder is made unreadable by a name too long to be opened by its whole path.
    folder = installation.root / "docs"
    fill(folder, 15)
    assert sync(installation, *PRUNE).exit == 0
    kept = folder / "000" / "03.md"
    data = kept.read_bytes()
    _make_deep(folder, 20)
    kept.unlink()
    write(folder, "elsewhere.md", data)
    finished = sync(installation, *PRUNE)
    assert finished.json["counts"]["detached"] == finished.json["counts"]["moved"] == 0
    assert "some folders could not be read" in " ".join(finished.json["notes"])
    assert [(code, files) for code, files, _ in withheld(finished)] == [("folder_unreadable", 1)]
    assert finished.exit == 3
    assert finished.json["error"]["code"] == "svc_file_unreadable"
    assert "000/03.md" in titles(installation)


def _make_deep(folder: Path, levels: int) -> None:
    """A tree that is deeper than a path may be long; made step by step."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d" * 250, dir_fd=here)
        there = os.open("d" * 250, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = there
    os.close(here)


def test_a_disk_taken_away_in_the_middle_of_the_walk_takes_nothing_out(installation: Installation) -> None:
    fill(installation.root / "docs", 8)
    folder = installation.root / "docs" / "000"
    assert sync(installation, *PRUNE, folder="docs/000").exit == 0
    write(folder, "00.bin", b"\0")  # the first to be told of, while the others are still to be met
    mapping = Mapping(name="docs", folder=folder, bucket=BUCKET)
    options = SyncOptions(
        max_tags=20,
        max_tag_characters=64,
        filters=Filters(extensions=frozenset({".md"}), max_bytes=10**6, max_path_characters=100),
        prune="detach",
    )
    with Client(installation.base_url, installation.key) as client:
        index_path = mapping.index_path(installation.root / "state", client.service)
        report = run_sync(client, mapping, options, index_path, Silent(), lambda _: _take_away(folder))
    assert (report.counts["gone"], report.counts["detached"]) == (8, 0)
    assert len(titles(installation)) == 8


def _take_away(folder: Path) -> None:
    if folder.exists():
        folder.rename(folder.with_name("away"))


def test_a_name_that_a_mapping_was_not_given_takes_nothing_of_others_out(installation: Installation) -> None:
    for place in ("a", "b"):
        write(installation.root / place, "svc.toml", f'[[map]]\ndir = "docs"\nbucket = "{BUCKET}"\nprune = "delete"\n')
        write(installation.root / place / "docs", f"{place}.md", f"Words of {place}.")
        finished = installation.svc("sync", "--all", "--json", cwd=installation.root / place)
        assert finished.exit == 0
    assert titles(installation) == ["a.md", "b.md"]
    refused = installation.svc("sync", "svc.toml", "--name", "docs", cwd=installation.root / "a")
    assert (refused.exit, "leave the folder out" in refused.stderr) == (2, True)


def test_a_document_with_the_title_of_a_file_is_left_alone(installation: Installation) -> None:
    stranger = put_stranger(installation, "a.md")
    folder = installation.root / "docs"
    write(folder, "a.md", "Words of ours.")
    assert counts(sync(installation, *PRUNE)) == {"created": 1}
    write(folder, "a.md", "Other words of ours.")
    assert counts(sync(installation, *PRUNE)) == {"updated": 1}
    write(folder, "b.md", "More.")
    (folder / "a.md").unlink()
    assert counts(sync(installation, *PRUNE)) == {"created": 1, "detached": 1}
    assert [source["id"] for source in list_held(installation) if source["title"] == "a.md"] == [stranger]


def test_two_mappings_into_one_bucket_do_not_meet(installation: Installation) -> None:
    one, two = installation.root / "one", installation.root / "two"
    for folder in (one, two):
        write(folder, "same.md", "The same words.")
        write(folder, "own.md", f"Words of {folder.name}.")
    for name in ("one", "two"):
        assert counts(sync(installation, *PRUNE[:2], folder=name)) == {"created": 2}
    assert len(titles(installation)) == 4
    (one / "same.md").unlink()
    assert counts(sync(installation, *PRUNE[:2], folder="one")) == {"detached": 1, "unchanged": 1}
    assert counts(sync(installation, *PRUNE[:2], folder="two")) == {"unchanged": 2}
    shutil.rmtree(one)
    assert titles(installation) == ["own.md", "own.md", "same.md"]


def test_a_folder_that_comes_back_as_it_was_is_equal_again(installation: Installation, docs: Path) -> None:
    assert installation.svc("source", "rm", "--force", *(each["id"] for each in list_held(installation))).exit == 0
    finished = sync(installation, *PRUNE)
    assert (finished.exit, counts(finished)) == (0, {"created": 40})
    assert_equal(installation, docs)
