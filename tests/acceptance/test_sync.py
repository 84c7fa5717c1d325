"""`svc sync` in daily use: it sends only what has changed, and reports what it did with each file."""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from svc_cli.client.api import Client
from tests.acceptance import sync_folders
from tests.acceptance.installations import Installation
from tests.acceptance.sync_folders import BUCKET, assert_equal, counts, fill, found, list_held, sync, titles, write

DETACH = ("--prune", "detach")


@pytest.fixture
def docs(installation: Installation) -> Path:
    folder = fill(installation.root / "docs", 12)
    assert counts(sync(installation)) == {"created": 12}
    return folder


def test_sync_of_an_unchanged_folder_sends_two_requests_and_no_bytes(installation: Installation, docs: Path) -> None:
    # During the diff, the end of the event stream that the first sync has followed is logged.
    assert sync(installation, verb="diff").exit == 0
    before = sync_folders.count_requests(installation)
    finished = sync(installation)
    assert (finished.exit, counts(finished), finished.json["items"]) == (0, {"unchanged": 12}, [])
    asked = sync_folders.count_requests(installation) - before
    asked.pop("GET /healthz", None)  # whether the daemon is there
    assert set(asked) == {"GET /v1/limits", "GET /v1/buckets/{bucket}"}
    assert_equal(installation, docs)
    # Touched files are read and not sent.
    ago_ns = time.time_ns() - 10**10
    for path in docs.rglob("*.md"):
        os.utime(path, ns=(ago_ns, ago_ns))
    touched = sync(installation)
    assert (counts(touched), touched.json["bytes_sent"]) == ({"unchanged": 12}, 0)
    # A restarted daemon at another port is still the same service.
    installation.stop()
    installation.start()
    assert counts(sync(installation)) == {"unchanged": 12}
    assert len(list((installation.root / "state" / "sync").glob("*.db"))) == 1


def test_sync_uploads_new_and_changed_files_and_detaches_deleted_ones(installation: Installation, docs: Path) -> None:
    write(docs, "000/01.md", "Other words altogether.")
    write(docs, "new/place.md", "New words.")
    (docs / "000" / "02.md").unlink()
    finished = sync(installation, *DETACH)
    assert counts(finished) == {"created": 1, "updated": 1, "detached": 1, "unchanged": 10}
    assert finished.json["bytes_sent"] == len("Other words altogether.") + len("New words.")
    assert_equal(installation, docs)


def test_sync_renames_sources_of_moved_files_without_sending_bytes(installation: Installation, docs: Path) -> None:
    ids = {source["id"] for source in list_held(installation)}
    (docs / "000").rename(docs / "renamed")
    (docs / "renamed" / "05.md").rename(docs / "five.md")
    before = list_held(installation)
    planned = sync(installation, verb="diff")
    assert (planned.exit, counts(planned), list_held(installation)) == (10, {"moved": 12}, before)
    finished = sync(installation, *DETACH)
    assert (counts(finished), finished.json["bytes_sent"]) == ({"moved": 12}, 0)
    assert {source["id"] for source in list_held(installation)} == ids
    assert_equal(installation, docs)
    assert (found(installation, "wren5"), counts(sync(installation))) == (["five.md"], {"unchanged": 12})
    for old, new in (("renamed/01.md", "aside"), ("renamed/02.md", "renamed/01.md"), ("aside", "renamed/02.md")):
        (docs / old).rename(docs / new)
    assert sync(installation, *DETACH).exit == 0
    assert_equal(installation, docs)


def test_sync_restores_sources_that_were_deleted_renamed_or_detached_in_the_bucket(
    installation: Installation, docs: Path
) -> None:
    by_title = {source["title"]: source["id"] for source in list_held(installation)}
    with installation.client() as client:
        client.delete(f"/v1/sources/{by_title['000/01.md']}").raise_for_status()
        client.patch(f"/v1/sources/{by_title['000/02.md']}", json={"title": "renamed.md"}).raise_for_status()
        client.delete(f"/v1/buckets/{BUCKET}/sources/{by_title['000/03.md']}").raise_for_status()
    finished = sync(installation, *DETACH)
    assert (finished.exit, counts(finished)) == (0, {"created": 2, "moved": 1, "unchanged": 9})
    assert counts(sync(installation, "--verify-remote", *DETACH)) == {"unchanged": 12}
    assert_equal(installation, docs)


def test_sync_all_runs_each_mapping_and_only_one_with_a_missing_folder_fails(installation: Installation) -> None:
    for name in ("one", "three"):
        write(installation.root, f"{name}/a.md", f"Words of {name}.")
    tables = "\n".join(f'[[map]]\ndir = "{name}"' for name in ("one", "two", "three"))
    (installation.root / "svc.toml").write_text(f'bucket = "{BUCKET}"\n{tables}\n')
    finished = installation.svc("sync", "--all", "--json")
    assert finished.exit == 5
    ends = {each["mapping"]: (each["counts"]["created"], each["exit_code"]) for each in finished.json["mappings"]}
    assert (ends, len(titles(installation))) == ({"one": (1, 0), "two": (0, 5), "three": (1, 0)}, 2)
    (installation.root / "two").mkdir()
    assert installation.svc("sync", "--all", "--json").exit == 0


def test_failed_update_keeps_the_old_version_until_a_corrected_one_replaces_it(
    installation: Installation, docs: Path
) -> None:
    good = (docs / "000" / "01.md").read_bytes()
    write(docs, "000/01.md", b"\0\1\2 no text")
    for sent in (11, 0):
        failed = sync(installation)
        assert (failed.exit, failed.json["counts"]["failed"], failed.json["bytes_sent"]) == (3, 1, sent)
    assert found(installation, "wren1") == ["000/01.md"]
    write(docs, "000/01.md", good + b"More.")
    assert sync(installation).exit == 0
    assert_equal(installation, docs)


def test_full_state_folder_fails_the_sync_and_the_next_run_completes(installation: Installation) -> None:
    docs = fill(installation.root / "docs", 120)
    assert sync(installation, "--dry-run").exit == 0
    # To SQLite, a limit on the file size looks like a full disk.
    words = [sys.executable, "-m", "svc_cli", "sync", "docs", "-b", BUCKET, "--json"]
    full = installation.run("/bin/sh", "-c", 'trap "" XFSZ; ulimit -f 40; exec "$@"', "sh", *words)
    assert (full.failure, "Traceback" in full.stderr) == ((7, "svc_no_room"), False), full
    assert sync(installation).exit == 0
    assert_equal(installation, docs)


def set_by_hand(installation: Installation, **fields: Any) -> None:
    with Client(installation.base_url, installation.key) as client:
        source = next(each for each in client.sources(BUCKET) if each["title"] == "set.md")
        client.update_source(source["id"], **fields)


def test_what_a_person_set_on_a_source_stays_when_its_file_changes(installation: Installation, docs: Path) -> None:
    def table(*tags: str) -> None:
        (installation.root / "svc.toml").write_text(
            f'[[map]]\ndir = "docs"\nname = "m"\nbucket = "{BUCKET}"\ntags = {json.dumps(tags)}\n'
        )

    def facts() -> tuple[list[str], dict[str, Any]]:
        source = next(each for each in list_held(installation) if each["title"] == "set.md")
        return sorted(source["tags"]), source["metadata"]

    table("old", "both")
    write(docs, "set.md", "First words.")
    assert sync(installation).exit == 0
    set_by_hand(installation, tags=["mine", "old", "both"], metadata={"owner": "Ann"})
    table("both", "new")
    write(docs, "set.md", "Second words.")
    assert counts(sync(installation))["updated"] == 1
    assert facts() == (["both", "mine", "new"], {"owner": "Ann"})
    write(docs, "set.md", "Third words.")
    assert counts(sync(installation))["updated"] == 1
    assert facts() == (["both", "mine", "new"], {"owner": "Ann"}), "it stays in each version"


def test_replacing_upload_keeps_tags_and_metadata_and_adds_its_own(installation: Installation, docs: Path) -> None:
    words = ("upload", "set.md", "-b", BUCKET, "--json")
    for number, more in enumerate(((), ("--tag", "second", "--meta", "k=2"), ()), 1):
        write(docs, "set.md", f"Words of version {number}.")
        assert installation.svc(*words, "--replace", *more, cwd=docs).exit == 0
        if number == 1:
            set_by_hand(installation, tags=["mine"], metadata={"k": "1", "owner": "Ann"})
    (source,) = [each for each in list_held(installation) if each["title"] == "set.md"]
    assert (sorted(source["tags"]), source["metadata"]) == (["mine", "second"], {"k": "2", "owner": "Ann"})


def test_first_sync_says_that_the_bucket_has_its_files_also_as_documents_of_others(installation: Installation) -> None:
    (installation.root / "old").mkdir()
    for name, text in {"a.md": "The aardvark digs.", "b.md": "The badger sleeps."}.items():
        write(installation.root / "old", name, text)
    assert sync(installation, folder="old").json["notes"] == ["created the bucket handbook."]
    assert installation.svc("upload", "old/a.md", "-b", BUCKET, "--as-new").exit == 0
    (installation.root / "old").rename(installation.root / "new")
    write(installation.root / "new", "c.md", "The crane flies.")
    moved = "2 files are in the bucket also as documents of the folder 'old'"
    sent = "1 file is in the bucket also as documents added by `svc upload`"
    for verb in ("diff", "sync"):
        notes = sync(installation, folder="new", verb=verb).json["notes"]
        assert [note.partition(":")[0] for note in notes] == [moved, sent], verb
    assert sync(installation, folder="new").json["notes"] == []
