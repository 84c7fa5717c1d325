"""Commands that show and change buckets and sources, against a real daemon."""

import functools
import json
import shlex
from pathlib import Path

import pytest

from svc_daemon.tools.catalogue import TOOLS
from tests.acceptance.installations import Finished, Installation, wait_until
from tests.cli.terminals import Json, RunSvc
from tests.samples import make_pdf

BROKEN = b"%PDF-1.7\nnothing"


@functools.cache
def _plan() -> bytes:
    """Return a PDF of two pages, cached because a PDF contains its creation time."""
    return make_pdf(["Nothing of note.", "The umber plan starts in May."])


@pytest.fixture
def here(here: RunSvc) -> RunSvc:
    """`svc` at the shared installation, with two documents in the bucket `handbook`."""
    Path("leave.md").write_text("# Leave\n\n## Parents\n\nThe cobalt rule grants ninety days.\n")
    Path("plan.pdf").write_bytes(_plan())
    assert here("upload", "leave.md", "plan.pdf", "-b", "handbook", "--tag", "hr").exit == 0
    return here


def _list(here: RunSvc, bucket: str, *words: str) -> list[Json]:
    return list(here("source", "ls", "-b", bucket, *words, "--json").json["sources"])


def _words(finished: Finished, *expected: str) -> None:
    assert finished.exit == 0, finished.stderr
    assert [word for word in expected if word not in finished.stdout] == []


def test_the_help_of_mcp_names_every_tool(svc: RunSvc) -> None:
    shown = " ".join(svc("mcp", "--help").stdout.split())
    verbs = {"svc-upload-file": "upload files", "svc-upload-files-batch": "upload files", "svc-search": "search"}
    verbs |= {"svc-source-status": "whether they are ready", "svc-list-buckets": "list buckets", "svc-ask": "ask"}
    assert set(verbs) == {tool.name for tool in TOOLS}
    assert [verb for verb in verbs.values() if verb not in shown] == []


@pytest.mark.parametrize(
    ("words", "rows", "name"), (("search rule plan", "data", "source_id"), ("source ls", "sources", "id"))
)
def test_ndjson_prints_each_result_and_source_on_its_own_line(words: str, rows: str, name: str, here: RunSvc) -> None:
    page = here(*words.split(), "-b", "handbook", "--json").json
    *lines, last = map(json.loads, here(*words.split(), "-b", "handbook", "--ndjson").stdout.splitlines())
    assert [line[name] for line in lines] == [row[name] for row in page[rows]]
    assert set(last) == set(page) - {rows}


def test_quiet_hides_notes_but_not_results_and_errors(here: RunSvc) -> None:
    Path("calm.md").write_text("Words of calm.")
    loud, calm = here("upload", "calm.md", "-b", "calm-1"), here("upload", "calm.md", "-b", "calm-2", "-q")
    assert "created the bucket calm-1" in loud.stderr
    assert calm.stderr == ""
    assert "calm.md" in calm.stdout
    assert "error:" in here("source", "show", "nothing", "-q").stderr


def test_search_applies_its_options_and_shows_the_location_of_each_result(
    here: RunSvc, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SVC_BUCKET", "handbook")
    _words(here("search", "cobalt rule"), "leave.md", "line", "Leave > Parents", "ninety days")
    _words(here("search", "umber plan"), "plan.pdf", "page 2")
    explained = here("search", *shlex.split("cobalt rule -k 1 --mode keyword --explain"))
    _words(explained, "found by", "bm25", "covers 100% of the query", "- cobalt", "in text")
    assert explained.stdout.count("found by") == 1
    assert "plan.pdf" not in explained.stdout
    monkeypatch.setenv("SVC_BUCKET", "no-such-bucket")
    assert here("search", "cobalt").exit == 5
    assert here("search", "rule", "-b", "handbook", "--tag", "none", "--json").json["data"] == []
    _words(here("search", "zzzunknownword", "-b", "handbook"), "nothing found")


def test_status_shows_all_buckets_one_bucket_or_one_source(here: RunSvc) -> None:
    _words(here("status"), "handbook")
    _words(here("status", "-b", "handbook"), "handbook", "active")
    (source,) = _list(here, "handbook", "--title", "leave.md")
    for words in ((), ("-b", "handbook")):
        _words(here("status", source["id"], *words), "ready", "leave.md")
    assert here("status", source["id"], "--json").json["ready"] is True
    assert here("status", "src_missing").exit == 5
    assert here("wait", source["id"], "--timeout", "1s").exit == 0
    assert here("wait", "src_missing", "--json").failure == (5, "source_not_found")


def test_failed_source_is_shown_with_its_error_and_can_be_retried(here: RunSvc) -> None:
    Path("broken.pdf").write_bytes(BROKEN)
    here("upload", "broken.pdf", "-b", "broken")
    _words(here("status", "-b", "broken"), "broken.pdf", "document_unreadable")
    (source,) = here("status", "-b", "broken", "--json").json["sources"]
    assert source["status"] == "failed"
    assert here("status", "-b", "broken", "--watch").exit == 0
    assert here("source", "retry", source["id"], "--json").json["status"] == "queued"
    waited = here("wait", source["id"], "--json")
    assert waited.failure == (3, "document_unreadable")
    assert waited.json["counts"]["failed"] == 1
    assert "request_id" in waited.json["items"][0]["error"]
    assert here("source", "retry", "leave.md", "-b", "handbook").exit == 3
    _words(here("source", "ls", "-b", "broken", "--group-by", "error_code"), "document_unreadable", "no")
    for dry in ((), ("--dry-run",)):
        retried = here("source", "retry", "-b", "broken", "--failed", "--json", *dry).json
        assert (retried["queued"], retried["not_helped"]) == (0, {"document_unreadable": 1})
    _words(here("source", "retry", "-b", "broken", "--failed"), "queued 0 sources again", "1 document_unreadable")
    for odd in ((), ("x.pdf", "-b", "broken", "--failed"), ("--failed",), ("x.pdf", "--code", "c")):
        assert here("source", "retry", *odd).exit == 2


def test_source_commands_list_by_page_and_filter_show_a_source_and_print_its_text(here: RunSvc) -> None:
    ids = [each["id"] for each in _list(here, "handbook")]
    assert len(ids) == 2
    assert [each["id"] for each in _list(here, "handbook", "--limit", "1", "--after", ids[0])] == ids[1:]
    titles = [each["title"] for each in _list(here, "handbook", "--sort", "-title")]
    assert titles == sorted(titles, reverse=True)
    assert here("source", "ls", "-b", "handbook", "--sort", "colour").exit == 3
    assert [each["title"] for each in _list(here, "handbook", "--match", "leave")] == ["leave.md"]
    (source,) = _list(here, "handbook", "--title", "plan.pdf")
    _words(here("source", "show", source["id"], "--verify"), "plan.pdf", "STATE_ACTIVE", "application/pdf")
    _words(here("source", "text", source["id"]), "umber plan")
    _words(here("source", "text", source["id"], "--chunks"), "page 2")


def test_source_is_attached_detached_and_deleted(here: RunSvc) -> None:
    Path("moving.md").write_text("The russet words that move.")
    here("upload", "moving.md", "-b", "moving")
    here("bucket", "create", "second")
    (source,) = _list(here, "moving")
    assert here("source", "attach", source["id"], "-b", "second", "--dry-run", "--json").json["dry_run"] is True
    assert len(here("source", "attach", source["id"], "-b", "second", "--json").json["bucket_ids"]) == 2
    assert len(here("source", "detach", source["id"], "-b", "moving", "--json").json["bucket_ids"]) == 1
    assert [here("source", *words, source["id"]).exit for words in (("rm", "--dry-run"), ("show",))] == [0, 0]
    _words(here("source", "rm", source["id"], "--force"), f"deleted {source['id']}")
    assert here("source", "show", source["id"]).exit == 5


@pytest.mark.rule("bucket.members")
def test_lists_of_buckets_omit_the_ids_of_their_sources(here: RunSvc) -> None:
    here("bucket", "create", "counted")
    views = here("bucket", "ls", "--json").json["buckets"] + here("status", "--json").json["buckets"]
    views.append(here("status", "-b", "counted", "--json").json["bucket"])
    assert all("memberCount" in view and "knowledgeIds" not in view for view in views)
    assert here("bucket", "show", "counted", "--json").json["knowledgeIds"] == []


def test_bucket_is_created_shown_archived_and_restored(here: RunSvc) -> None:
    assert here("bucket", "create", "fresh", "--dry-run", "--json").json["dry_run"] is True
    assert here("bucket", "show", "fresh").exit == 5
    assert here("bucket", "create", "fresh", "--name", "Fresh", "--meta", "a=b", "--json").json["created"] is True
    assert here("bucket", "create", "fresh", "--json").json["created"] is False
    _words(here("bucket", "show", "fresh"), "Fresh", "a=b")
    assert here("bucket", "create", "Not A Slug").exit == 3
    here("bucket", "archive", "fresh")
    listed = [here("bucket", "ls", "--names", *words).stdout.split() for words in ((), ("--all",))]
    assert ["fresh" in names for names in listed] == [False, True]
    assert here("bucket", "archive", "fresh", "--restore", "--json").json["status"] == "active"


def test_rm_without_a_terminal_fails_and_names_the_force_flag(here: RunSvc) -> None:
    _words(here("bucket", "rm", "handbook", "--dry-run"), "would delete handbook")
    for words in (("bucket", "rm", "handbook"), ("source", "rm", "leave.md", "-b", "handbook")):
        refused = here(*words, "--json")
        assert refused.failure == (2, "svc_usage")
        assert "--force" in refused.json["error"]["hint"]
    assert here("source", "show", "leave.md", "-b", "handbook").exit == 0


def test_bucket_rm_deletes_a_repeated_bucket_once_waits_and_prints_one_json_value(here: RunSvc) -> None:
    twice = here("bucket", "create", "doomed", "--json").json["id"]
    assert here("bucket", "rm", "doomed", twice, "--force", "--json").json["slug"] == "doomed"
    here("bucket", "create", "four")
    here("bucket", "create", "doomed")
    here("upload", "-", "--title", "doomed.txt", "-b", "doomed", stdin=b"Doomed words.")
    ended = here("bucket", "rm", "doomed", "--force", "--wait", "--json")
    assert ended.exit == 0
    assert ended.json["status"] == "deleted"
    assert ended.json["deletion"]["deleted"] == 1
    assert here("bucket", "show", "doomed").exit == 5
    here("bucket", "create", "doomed")
    deleted = here("bucket", "rm", "doomed", "four", "--force", "--wait", "--json").json
    assert deleted["type"] == "bucket.deletions"
    assert [item["status"] for item in deleted["items"]] == ["deleted"] * 2


def test_auth_token_prints_the_key_that_auth_status_and_config_list_hide(
    here: RunSvc, shared_installation: Installation
) -> None:
    assert here("auth", "token").stdout.strip() == shared_installation.key
    _words(here("auth", "status"), "accepted")
    for words in (("auth", "status"), ("config", "list", "--explain")):
        assert shared_installation.key not in here(*words).stdout


def test_bucket_set_changes_the_chunking_and_splits_the_sources_again(here: RunSvc) -> None:
    Path("quays.md").write_text("# Quays\n\n" + "The umber quay was built of grey stone. " * 120)
    assert here("upload", "quays.md", "-b", "quays").exit == 0
    changed = here("bucket", "set", "quays", "--chunk-size", "250", "--name", "In")
    assert (changed.exit, changed.stdout) == (0, "changed quays; 1 sources are being split again\n")
    wait_until(lambda: "to be split" not in here("bucket", "show", "quays").stdout, "the source is split again")
    _words(here("bucket", "show", "quays"), "250", "In")


def test_bucket_set_rejects_invalid_chunking_and_keeps_the_old_values(here: RunSvc) -> None:
    def chunking() -> dict[str, int]:
        return dict(here("bucket", "show", "outbox", "--json").json["chunking"])

    here("bucket", "create", "outbox", "--chunk-size", "500", "--chunk-overlap", "50")
    assert chunking() == {"target": 500, "min": 400, "max": 550, "overlap": 50}
    assert (here("bucket", "set", "outbox").exit, here("bucket", "set", "outbox", "--chunk-size", "9").exit) == (2, 2)
    overlapping = ("--chunk-size", "200", "--chunk-overlap", "150")
    assert here("bucket", "set", "outbox", *overlapping, "--json").failure == (3, "invalid_request")
    assert here("bucket", "set", "outbox", "--chunk-size", "200", "--dry-run").stdout == "would change outbox\n"
    assert here("bucket", "set", "outbox", "--chunk-overlap", "10").exit == 0
    assert (chunking()["target"], chunking()["overlap"]) == (500, 10)
