"""Files that are odd: their trouble is theirs, and never ends a run, a later run or the watcher."""

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.acceptance.installations import Installation
from tests.acceptance.sync_folders import BUCKET, counts, found, items, titles, write
from tests.acceptance.watches import watching

#: A pointer of Git LFS.
POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'4d' * 32}\nsize 12345\n"
#: Seconds since 1970: the years 1902, 1955, 1970, 2262 (where nanoseconds leave 64 bits), 2400 and 9999.
DATES = {
    "1902": -2145916800,
    "1955": -473385600,
    "1970": 0,
    "2262": 9223372036,
    "2400": 13569465600,
    "9999": 253370764800,
}


def test_files_of_any_date_are_sent_once_by_sync_and_watch(shared_installation: Installation, tmp_path: Path) -> None:
    folder = tmp_path / "dates"
    for name, date_s in DATES.items():
        os.utime(write(folder, f"{name}.md", f"Of the year {name}."), ns=(0, date_s * 10**9 + 999_999_999))
    first = shared_installation.svc("sync", str(folder), "-b", "dates", "--json")
    again = shared_installation.svc("sync", str(folder), "-b", "dates", "--json")
    assert (first.exit, counts(first)) == (0, {"created": len(DATES)}), first.stdout
    assert (again.exit, counts(again), again.json["bytes_sent"]) == (0, {"unchanged": len(DATES)}, 0)
    with watching(shared_installation, str(folder), "-b", "dates") as watch:
        write(folder, "now.md", "Of today.")
        watch.wait_for_item("created", "now.md")


def test_record_of_a_batch_that_cannot_be_finished_is_set_aside_and_said(
    installation: Installation, tmp_path: Path
) -> None:
    folder = tmp_path / "docs"
    for name in ("a", "b", "c"):
        write(folder, f"{name}.md", f"The letter {name}.")
    assert installation.svc("sync", str(folder), "-b", "letters", "--json").exit == 0
    (index,) = (installation.root / "state" / "sync").glob("*.db")
    with closing(sqlite3.connect(index)) as connection, connection:
        row = list(connection.execute("SELECT * FROM files WHERE path = 'a.md'").fetchone())
        columns = [each[1] for each in connection.execute("PRAGMA table_info(files)")]
        sha256 = row[columns.index("sha256")]
        row[columns.index("mtime_ns")] = 2**64  # as written by a release that could not store it
        body = json.dumps({"id": {"filename": "a.md", "title": "a.md", "sha256": sha256, "mapping": "docs"}})
        connection.execute("INSERT INTO batches VALUES ('id', ?, ?)", (body, json.dumps({"id": row})))
    write(folder, "new.md", "A new letter.")
    ended = installation.svc("sync", str(folder), "-b", "letters", "--json")
    assert (ended.exit, counts(ended)) == (0, {"created": 1, "unchanged": 3}), ended.stdout
    assert any("set aside" in note for note in ended.json["notes"])
    last = installation.svc("sync", str(folder), "-b", "letters", "--json")
    assert (last.exit, last.json["notes"], counts(last)) == (0, [], {"unchanged": 4})


def test_only_what_gives_no_bytes_is_empty(shared_installation: Installation, tmp_path: Path) -> None:
    for verb in ("upload", "sync"):
        given = shared_installation.svc(
            verb, "/proc/sys/kernel", "-b", f"kernel-{verb}", "--json", "--wait", "accepted"
        )
        listed = {path.rpartition("/")[2]: each for path, each in items(given).items()}
        assert (listed["ostype"]["action"], listed["ostype"]["size_bytes"]) == ("created", len("Linux\n")), given.stderr
    write(tmp_path, "empty.md", "")
    named = shared_installation.svc("upload", "/proc/version", "-b", "proc", "--json")
    assert (named.exit, counts(named)) == (0, {"created": 1, "ready": 1}), named.stdout
    assert shared_installation.svc("upload", str(tmp_path / "empty.md"), "-b", "proc", "--json").failure[0] == 3


def test_sync_of_which_nothing_is_sent_says_why(installation: Installation, tmp_path: Path) -> None:
    write(tmp_path / "docs", "a.pdf", POINTER)
    write(tmp_path / "docs", "b.bin", b"\0\1\2")
    ended = installation.svc("sync", str(tmp_path / "docs"), "-b", BUCKET, "--json")
    assert ended.failure == (3, "svc_nothing_to_send")
    assert "type can't be read" in ended.json["error"]["message"]
    assert "only a placeholder" in ended.json["error"]["message"]


def test_placeholder_is_left_out_and_never_replaces_or_removes_the_document_that_it_stands_for(
    installation: Installation, tmp_path: Path
) -> None:
    folder, words = tmp_path / "docs", ("-b", BUCKET, "--name", "docs", "--prune", "delete", "--json")
    for name, text in {"a.md": "The aardvark digs.", "b.md": "The badger sleeps.", "c.md": "The crane flies."}.items():
        write(folder, name, text)
    assert counts(installation.svc("sync", str(folder), *words)) == {"created": 3}
    write(folder, "a.md", POINTER)  # as in a clone without `git lfs pull`
    (folder / "b.md").rename(folder / ".b.md.icloud")
    write(folder, "new.pdf", POINTER)
    write(folder, "annex.pdf", "/annex/objects/SHA256E-s9--4d.pdf\n")
    write(folder, "plan.gdoc", '{"doc_id": "1"}')
    write(folder, "about.md", f"A pointer of Git LFS:\n\n{POINTER}")
    left_out = {"a.md", "annex.pdf", "b.md", "new.pdf", "plan.gdoc"}
    for verb, first in (("diff", "created"), ("sync", "created"), ("sync", "unchanged")):
        ended = installation.svc(verb, str(folder), *words)
        sent = {"created": 1, "unchanged": 1} if first == "created" else {"unchanged": 2}
        assert counts(ended) == {**sent, "skipped": 6}, ended.stdout
        assert {path for path, each in items(ended).items() if each["reason_code"] == "placeholder"} == left_out
        assert "2 files are in the bucket, but only a placeholder here: nothing was changed." in ended.json["notes"]
        assert ended.json["withheld"] == []
    assert titles(installation) == ["a.md", "about.md", "b.md", "c.md"]
    assert found(installation, "aardvark")
    given = installation.svc("upload", str(folder), "-b", "uploads", "--json")
    skipped = {path for path, each in items(given).items() if each["reason_code"] == "placeholder"}
    assert (given.exit, skipped) == (0, {"docs/a.md", "docs/annex.pdf", "docs/new.pdf", "docs/plan.gdoc"})
    assert installation.svc("upload", str(folder / "a.md"), "-b", "named", "--json").exit == 0, "it was named"
    write(folder, "a.md", "The aardvark rests.")
    assert counts(installation.svc("sync", str(folder), *words))["updated"] == 1
