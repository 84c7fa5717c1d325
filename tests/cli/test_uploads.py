"""`svc upload` against a real daemon."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.calls import list_sources, wait_ended
from tests.acceptance.installations import Finished, Installation
from tests.cli.terminals import RunSvc, only, write
from tests.processes import reading_nothing

Upload = Callable[..., Finished]


@pytest.fixture
def upload(here: RunSvc, bucket: str) -> Upload:
    """Run `svc upload … --json` into the test's own bucket."""
    return lambda *words, **options: here("upload", *words, "-b", bucket, "--json", **options)


def _write(name: str, text: str = "Some words about ferries.") -> None:
    write(Path(), name, data=text.encode())


def test_repeated_upload_sends_nothing(upload: Upload) -> None:
    _write("docs/a.md")
    _write("docs/sub/b.txt")
    first, second = upload("docs"), upload("docs")
    facts = [(item["path"], item["action"], item["ready"]) for item in first.json["items"]]
    assert facts == [("docs/a.md", "created", True), ("docs/sub/b.txt", "created", True)]
    assert [item["action"] for item in second.json["items"]] == ["unchanged", "unchanged"]
    assert [(each.exit, each.json["bytes_sent"]) for each in (first, second)] == [(0, 50), (0, 0)]
    assert [item["source_id"] for item in second.json["items"]] == [item["source_id"] for item in first.json["items"]]


def test_changed_file_is_a_conflict_and_is_not_sent(upload: Upload) -> None:
    _write("a.md")
    first = only(upload("a.md"))
    _write("a.md", "Other words.")
    second = upload("a.md")
    item = only(second)
    assert second.exit == 6
    assert item["action"] == "conflict"
    assert item["error"]["code"] == "svc_title_conflict"
    assert second.json["bytes_sent"] == 0
    assert item["source_id"] == first["source_id"]
    assert "--replace" in item["error"]["hint"]


def test_replace_leaves_one_source_and_can_return_to_earlier_bytes(
    upload: Upload, bucket: str, shared_installation: Installation
) -> None:
    ids = []
    for text in ("first", "second", "first", "second"):
        _write("a.md", f"The {text} words.")
        finished = upload("a.md", "--replace")
        assert finished.exit == 0
        assert only(finished)["ready"] is True
        ids.append(only(finished)["source_id"])
    with shared_installation.client() as client:
        assert [source["id"] for source in list_sources(client, bucket)] == [ids[-1]]
    assert len(set(ids)) == 4


def test_a_folder_is_the_same_files_from_wherever_it_is_named(
    upload: Upload, bucket: str, shared_installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = Path.cwd()
    _write("a/d/leave.md")
    _write("a/d/sub/rest.md", "Other words.")
    first = upload("a/d")
    assert [item["path"] for item in first.json["items"]] == ["a/d/leave.md", "a/d/sub/rest.md"]
    for folder, path in (("a", "d"), ("a/d", "."), ("a/d/sub", ".."), (".", f"{work}/a/d"), ("a/d/sub", "../../d")):
        monkeypatch.chdir(work / folder)
        again = upload(path, "--tag", path[-1])
        assert [item["action"] for item in again.json["items"]] == ["unchanged", "unchanged"], path
        assert [item["as_title"] for item in again.json["items"]] == ["a/d/leave.md", "a/d/sub/rest.md"], path
    assert only(upload("../leave.md"))["as_title"] == "a/d/leave.md"
    shown = shared_installation.svc("upload", "../leave.md", "-b", bucket, cwd=work / "a/d/sub").stdout
    assert "leave.md (as a/d/leave.md)" in shown
    with shared_installation.client() as client:
        assert [source["tags"] for source in list_sources(client, bucket)] == [["d", "."]] * 2
    assert [only(upload("../leave.md", "--as-new"))["action"] for _ in range(2)] == ["created", "unchanged"]


def test_a_copy_whose_twin_is_of_the_same_run_or_of_a_synced_folder_is_sent(
    upload: Upload, bucket: str, svc: RunSvc
) -> None:
    for name in ("docs/a.md", "a.md", "synced/b.md"):
        _write(name, name[-4:])
    assert [item["action"] for item in upload("docs/a.md", "a.md").json["items"]] == ["created", "created"]
    assert svc("sync", str(Path("synced").absolute()), "-b", bucket).exit == 0
    assert only(upload("synced/b.md"))["action"] == "created"


def test_deleted_or_detached_file_is_created_again(upload: Upload, bucket: str, svc: RunSvc) -> None:
    _write("a.md")
    ids = {only(upload("a.md"))["source_id"]}
    for words in (("rm", "--force"), ("rm", "--force"), ("detach", "-b", bucket)):
        (last,) = ids
        assert svc("source", words[0], last, *words[1:]).exit == 0
        item = only(upload("a.md"))
        assert item["action"] == "created"
        assert item["ready"] is True
        assert item["source_id"] not in ids
        ids = {item["source_id"]}


def test_refused_file_or_tags_exit_with_3_and_the_error_code(upload: Upload) -> None:
    _write("a.md")
    _write("empty.md", "")
    with Path("large.md").open("wb") as file:
        file.truncate(26_214_401)
    tags = " ".join(f"--tag t{number}" for number in range(21))
    cells = {"empty.md": "empty_file", "- --title empty.md": "empty_file", "large.md": "file_too_large"}
    for words, code in (cells | {f"a.md {tags}": "too_many_tags"}).items():
        assert upload(*words.split()).failure == (3, code), words
    assert upload("large.md").json["bytes_sent"] == 0


def test_title_tags_and_metadata_are_stored(upload: Upload, svc: RunSvc) -> None:
    _write("a.md")
    named = only(upload("-", "--title", "notes/today.md", stdin=b"# Today\n\nNothing happened."))
    shown = svc("source", "show", named["source_id"], "--json").json
    facts = (shown["title"], shown["filename"], shown["content_type"], named["ready"])
    assert facts == ("notes/today.md", "today.md", "text/markdown", True)
    item = only(upload("a.md", "--tag", "x", "--tag", "y z", "--meta", "k=v=w", "--title", "Ü"))
    shown = svc("source", "show", item["source_id"], "--json").json
    assert shown["tags"] == ["x", "y z"]
    assert shown["metadata"] == {"k": "v=w"}
    assert shown["title"] == "Ü"


def test_dry_run_reports_actions_and_changes_nothing(upload: Upload, bucket: str, svc: RunSvc) -> None:
    _write("a.md")
    _write("b.md")
    dry = upload("a.md", "b.md", "--dry-run").json
    assert [item["action"] for item in dry["items"]] == ["would_create", "would_create"]
    assert dry["dry_run"] is True
    assert svc("bucket", "show", bucket).exit == 5
    upload("a.md")
    _write("a.md", "Other words.")
    dry = upload("a.md", "b.md", "--dry-run", "--replace").json
    assert [item["action"] for item in dry["items"]] == ["would_replace", "would_create"]
    assert dry["bytes_sent"] == 0


def test_unreadable_file_does_not_prevent_other_uploads(upload: Upload) -> None:
    _write("a.md")
    os.mkfifo("pipe.md")
    finished = upload("a.md", "pipe.md")
    assert finished.exit == 3
    assert {item["path"]: item["ready"] for item in finished.json["items"]} == {"a.md": True, "pipe.md": False}


def test_ndjson_prints_item_events_and_then_the_summary(here: RunSvc) -> None:
    _write("a.md")
    lines = [json.loads(line) for line in here("upload", "a.md", "-b", "events", "--ndjson").stdout.splitlines()]
    events = [(line["type"], line.get("ready")) for line in lines]
    assert events == [("upload.item", False), ("upload.item", True), ("upload.summary", None)]


def test_title_may_be_longer_than_the_name_of_a_file(upload: Upload) -> None:
    _write("a.md")
    finished = upload("a.md", "--title", "\u00e9" * 1024)
    assert finished.exit == 0, finished.stdout
    (item,) = finished.json["items"]
    assert (item["path"], item["ready"]) == ("\u00e9" * 1024, True)


def test_refused_key_fails_the_whole_upload(upload: Upload, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        _write(f"docs/{number}.md", str(number))
    monkeypatch.setenv("SVC_API_KEY", "sk-wrong")
    assert upload("docs").failure == (4, "invalid_project_key")


@pytest.mark.parametrize("verb", ["upload", "sync"])
def test_unchanged_files_are_refused_by_an_archived_bucket(here: RunSvc, verb: str) -> None:
    _write("docs/a.md")
    words, name = (verb, "docs", "--json"), f"archived-by-{verb}"
    assert [here(*words, "-b", name).exit, here("bucket", "archive", name).exit] == [0, 0]
    finished = here(*words, "-b", name)
    assert finished.failure == (5, "bucket_not_found")
    assert "archived" in finished.json["error"]["message"]
    assert f"svc bucket archive --restore {name}" in finished.json["error"]["hint"]


def test_source_becomes_ready_after_the_upload_has_timed_out(upload: Upload, shared_installation: Installation) -> None:
    _write("a.md")
    with reading_nothing(shared_installation.pids):
        finished = upload("a.md", "--timeout", "3")
    (source_id,) = finished.json["error"]["details"]["source_ids"]
    assert finished.failure == (8, "svc_timeout")
    with shared_installation.client() as client:
        assert wait_ended(client, source_id)["ready"] is True
