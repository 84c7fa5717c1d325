"""Looking up a source by title, file name or id, and downloading its bytes with `svc source get`."""

import os
import subprocess
from contextlib import nullcontext
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from svc_cli.errors import UsageError
from svc_cli.transfer.downloads import writing
from tests.acceptance.forks import Fork
from tests.acceptance.installations import Installation
from tests.cli.odd_servers import OddServer
from tests.cli.terminals import RunSvc, write
from tests.samples import make_pdf

SOURCE_ID = "src_01m81nywyax2k70ggze3mxk36g"
GET = ("source", "get", "plan.pdf", "-b", "plans")


@pytest.fixture
def handbook(here: RunSvc) -> RunSvc:
    """`svc` at the shared installation, with `docs/leave.md` in the buckets `handbook` and `second`."""
    Path("docs").mkdir()
    Path("docs/leave.md").write_text("The cobalt rule grants ninety days.\n")
    Path("pay.md").write_text("The umber rule.\n")
    assert here("upload", "docs/leave.md", "pay.md", "-b", "handbook").exit == 0
    assert here("upload", "docs/leave.md", "-b", "second").exit == 0
    return here


def _ids(handbook: RunSvc, bucket: str) -> dict[str, str]:
    return {each["title"]: each["id"] for each in handbook("source", "ls", "-b", bucket, "--json").json["sources"]}


def test_source_is_found_by_title_file_name_or_id_prefix(handbook: RunSvc, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = _ids(handbook, "handbook")
    leave, pay = ids["docs/leave.md"], ids["pay.md"]
    for name, meant in (("docs/leave.md", leave), ("leave.md", leave), ("pay.md", pay), (leave[:-3], leave)):
        assert handbook("source", "show", name, "-b", "handbook", "--json").json["id"] == meant
    assert handbook("source", "show", "pay.md", "--json").json["id"] == pay
    monkeypatch.setenv("SVC_BUCKET", "second")
    assert handbook("source", "show", "leave.md", "--json").json["id"] == _ids(handbook, "second")["docs/leave.md"]


@pytest.mark.parametrize("words", (("source", "text"), ("source", "get"), ("status",), ("wait",)))
def test_commands_that_read_a_source_accept_the_same_names(words: tuple[str, ...], handbook: RunSvc) -> None:
    finished = handbook(*words, "leave.md", "-b", "handbook")
    assert finished.exit == 0
    assert finished.stdout != ""


def test_ambiguous_name_is_an_error_that_lists_the_matches(handbook: RunSvc) -> None:
    refused = handbook("source", "show", "leave.md", "--json")
    error = refused.json["error"]
    both = {_ids(handbook, bucket)["docs/leave.md"] for bucket in ("handbook", "second")}
    assert refused.failure == (2, "svc_source_ambiguous")
    assert set(error["details"]["source_ids"]) == both
    assert all(each in error["hint"] for each in both)
    assert handbook("status", "src_0").exit == 2


def test_misspelled_source_or_bucket_gets_a_suggestion(handbook: RunSvc) -> None:
    missing = handbook("source", "show", "leaf.md", "-b", "handbook", "--json")
    assert missing.failure == (5, "source_not_found")
    assert "did you mean 'leave.md'?" in missing.json["error"]["hint"]
    asking = ("search cobalt -b", "ask cobalt --no-stream -b", "ask cobalt --stream -b handbook -b")
    for words in (*asking, "source ls -b", "upload pay.md --no-create -b", "bucket show", "status -b"):
        missing = handbook(*words.split(), "handbok", "--json")
        assert missing.failure == (5, "bucket_not_found"), words
        assert "did you mean 'handbook'?" in missing.json["error"]["hint"], words
    assert "did you mean 'handbook'?" in handbook("bucket", "show", "HANDBOOK", "--json").json["error"]["hint"]
    assert "did you mean" not in handbook("bucket", "show", "xyz", "--json").json["error"]["hint"]


def test_misspelled_agent_gets_a_suggestion(handbook: RunSvc) -> None:
    handbook("agent", "create", "wages", "--name", "Pay Desk", "-b", "handbook")
    for words in ("ask", "search"):
        for name in ("wage", "pay-desk"):
            missing = handbook(words, "cobalt", "--agent", name, "--json")
            assert missing.failure == (5, "agent_not_found"), (words, name)
            assert "did you mean 'wages'?" in missing.json["error"]["hint"], (words, name)


def test_archived_bucket_is_not_suggested_but_can_be_restored(handbook: RunSvc) -> None:
    assert handbook("bucket", "create", "shelved").exit == handbook("bucket", "archive", "shelved").exit == 0
    for words in ("search cobalt -b", "upload pay.md -b", "status -b", "source ls -b"):
        refused = handbook(*words.split(), "shelved", "--json")
        if refused.exit:  # some commands show an archived bucket
            assert refused.failure == (5, "bucket_not_found"), words
            assert "archive --restore shelved" in refused.json["error"]["hint"], words
            assert "did you mean" not in refused.json["error"]["hint"], words
    assert handbook("search", "cobalt", "-b", "shelved").exit == 5


def test_status_of_a_bucket_says_what_its_sources_wait_for(svc: RunSvc, at_odd: RunSvc, odd: OddServer) -> None:
    store = {"status": "indexing", "pending_member_count": 1}
    bucket = {"id": "bkt_1", "slug": "b", "name": "b", "status": "active", "bucketStore": store}
    source = {"id": SOURCE_ID, "status": "indexing", "ready": False, "type": "file", "size_bytes": 1, "title": "a.md"}
    odd.answers["GET /v1/buckets/b"] = (200, {**bucket, "counts": {"retrievable": 0}}, {})
    odd.answers["GET /v1/buckets/b/sources"] = (200, {"sources": [source], "has_more": False}, {})
    odd.answers[f"GET /v1/sources/{SOURCE_ID}"] = (200, {**source, "waits_for": {"message": "The disk is full."}}, {})
    assert at_odd("status", "-b", "b").json["waits_for"] == {"message": "The disk is full."}
    assert "waits for: The disk is full." in svc("status", "-b", "b", "--base-url", odd.url).stdout


def test_complete_id_is_requested_without_a_lookup(at_odd: RunSvc, odd: OddServer) -> None:
    answer: dict[str, Any] = {"error": {"code": "source_not_found", "message": "gone", "retryable": False}}
    odd.answers[f"GET /v1/sources/{SOURCE_ID}"] = (404, answer, {})
    assert at_odd("source", "show", SOURCE_ID).exit == 5
    assert [path for _, path, _ in odd.requests if path.startswith("/v1")] == [f"/v1/sources/{SOURCE_ID}"]


@pytest.fixture
def plan(here: RunSvc) -> bytes:
    """The bytes of `plan.pdf` in the bucket `plans`."""
    content = make_pdf(["The umber plan starts in May."])
    Path("plan.pdf").write_bytes(content)
    assert here("upload", "plan.pdf", "-b", "plans", "--replace").exit == 0
    Path("plan.pdf").unlink()
    return content


@pytest.mark.parametrize("output", ((), ("-o", "-")))
def test_source_get_writes_the_original_bytes_to_a_pipe(
    output: tuple[str, ...], plan: bytes, shared_installation: Installation
) -> None:
    streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    words = ("svc_cli", *GET, *output)
    with Fork(words, env=shared_installation.environ, cwd=shared_installation.root, **streams) as process:
        assert process.communicate(timeout=60)[0] == plan
        assert process.returncode == 0


def test_source_get_replaces_an_existing_file(svc: RunSvc, plan: bytes) -> None:
    Path("old.pdf").write_bytes(b"old")
    got = svc(*GET, "-o", "old.pdf", "--json")
    assert got.exit == 0
    assert got.json["path"] == "old.pdf"
    assert got.json["sha256"] == sha256(plan).hexdigest()
    assert {path.name: path.read_bytes() for path in Path().iterdir()} == {"old.pdf": plan}


@pytest.mark.parametrize("words", (("--json",), ("-o", "-", "--json"), ("-o", "folder"), ("-o", "nowhere/plan.pdf")))
def test_source_get_to_an_unusable_destination_is_a_usage_error(
    words: tuple[str, ...], svc: RunSvc, plan: bytes
) -> None:
    Path("folder").mkdir()
    assert svc(*GET, *words).exit == 2
    assert [path.name for path in Path().rglob("*")] == ["folder"]


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        *((name, False) for name in ("CON", "nul.txt", "Com1.tar.gz", "aux .md", "lpt\u00b9", "CONOUT$", "a:b", "x.")),
        *((name, False) for name in ("x ", "what?.md", "a\tb.md", '"a".md', "a|b", "sub/prn.md")),
        *((name, True) for name in ("console.md", "com10", ".nul", "a b.md", "con-fig.txt", "K\u00f6ln.md")),
    ],
)
def test_a_file_gets_no_name_that_means_something_else_to_windows(
    name: str, is_one: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sub").mkdir()
    for opens_folders in (True, False):
        if not opens_folders:
            monkeypatch.setattr(os, "supports_dir_fd", set[Any]())
        with nullcontext() if opens_folders or is_one else pytest.raises(UsageError, match="name of a file on Windows"):
            with writing(str(tmp_path / name)) as file:
                file.write(b"words")
            (tmp_path / name).unlink()
    assert [each.name for each in tmp_path.rglob("*")] == ["sub"]


def test_source_get_keeps_the_existing_file_if_the_hash_differs(at_odd: RunSvc, odd: OddServer) -> None:
    source = {"id": SOURCE_ID, "title": "a.txt", "sha256": sha256(b"whole").hexdigest()}
    odd.answers[f"GET /v1/sources/{SOURCE_ID}"] = (200, source, {})
    odd.answers[f"GET /v1/sources/{SOURCE_ID}/content"] = (200, {"not": "whole"}, {})
    Path("kept.txt").write_text("kept")
    ended = at_odd("source", "get", SOURCE_ID, "-o", "kept.txt")
    assert ended.exit == 7
    assert "SHA-256" in ended.stderr
    assert {path.name: path.read_text() for path in Path().iterdir()} == {"kept.txt": "kept"}


def test_source_get_writes_to_the_target_of_a_symlink_and_keeps_its_mode(svc: RunSvc, plan: bytes) -> None:
    Path("kept").mkdir()
    target = Path("kept", "plan.pdf")
    target.write_bytes(b"old")
    target.chmod(0o600)
    Path("link.pdf").symlink_to(target)
    assert svc(*GET, "-o", "link.pdf").exit == 0
    found = (Path("link.pdf").readlink(), target.read_bytes(), target.stat().st_mode & 0o777)
    assert found == (target, plan, 0o600)


def test_source_get_writes_no_file_that_a_link_out_of_the_folder_or_a_second_name_leads_to(
    svc: RunSvc, plan: bytes, tmp_path: Path
) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_bytes(b"theirs")
    for target in (theirs, Path("..", "theirs"), tmp_path / "new"):
        Path("link.pdf").symlink_to(target)
        refused = svc(*GET, "-o", "link.pdf")
        assert refused.exit == 2
        assert "out of its folder" in refused.stderr
        assert str(tmp_path) in refused.stderr
        Path("link.pdf").unlink()
    # The draft's name, too, may be that of another file.
    Path(".plan.pdf.part").hardlink_to(theirs)
    assert svc(*GET, "-o", "plan.pdf").exit == 2
    Path(".plan.pdf.part").unlink()
    os.mkfifo(".plan.pdf.part")
    assert svc(*GET, "-o", "plan.pdf").exit == 2
    assert theirs.read_bytes() == b"theirs"
    assert not (tmp_path / "new").exists()
    assert not Path("plan.pdf").exists()


def test_source_get_writes_into_a_named_pipe_without_replacing_it(svc: RunSvc, plan: bytes) -> None:
    os.mkfifo("pipe")
    reader = subprocess.Popen(["cat", "pipe"], stdout=subprocess.PIPE)
    assert svc(*GET, "-o", "pipe").exit == 0
    assert reader.communicate(timeout=60)[0] == plan
    assert Path("pipe").is_fifo()


def test_set_changes_title_tags_and_metadata_of_exactly_one_source(here: RunSvc, bucket: str) -> None:
    write(Path(), "leave.md")
    assert here("upload", "leave.md", "-b", bucket).exit == 0
    words = ("source", "set", "leave.md", "-b", bucket)
    assert here(*words, "--json").failure == (2, "svc_usage")
    dry = here(*words, "--tag", "hr", "--dry-run", "--json").json
    assert (dry["dry_run"], dry["tags"]) == (True, ["hr"])
    assert here(*words, "--tag", "hr", "--tag", "old", "--meta", "owner=Kim", "--meta", "a=b").exit == 0
    done = here(*words, "--remove-tag", "old", "--remove-meta", "a", "--title", "Leave 2026", "--json").json
    assert [done[name] for name in ("title", "tags", "metadata")] == ["Leave 2026", ["hr"], {"owner": "Kim"}]
    again = here("source", "set", done["id"], "--tag", "hr")
    assert (again.exit, "is so already" in again.stdout) == (0, True)
    assert here(*words, "--tag", "x", "--json").failure == (2, "svc_not_exact"), "a file name is a guess"


def test_set_keeps_the_title_of_a_synced_file(here: RunSvc, bucket: str) -> None:
    write(Path(), "docs/a.md")
    assert here("sync", "docs", "-b", bucket).exit == 0
    words = ("source", "set", "a.md", "-b", bucket, "--json")
    assert here(*words, "--title", "b.md", "--tag", "x").failure == (6, "svc_title_of_mapping")
    assert here(*words, "--title", "a.md", "--tag", "y").json["tags"] == ["y"]
