"""The commands that look and change, against a real daemon."""

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from svc_daemon.tools.catalogue import TOOLS
from tests.acceptance.installations import Finished, Installation
from tests.cli.consoles import RunSvc
from tests.samples import make_pdf

Json = dict[str, Any]


@functools.cache
def _plan() -> bytes:
    """A PDF whose second page says something; made once, because a PDF tells when it was made."""
    return make_pdf(["Nothing of note.", "The umber plan starts in May."])


@pytest.fixture
def here(svc: RunSvc, at: Callable[[Installation], None], shared_installation: Installation) -> RunSvc:
    """`svc` at the shared installation, with two documents in the bucket `handbook`."""
    at(shared_installation)
    Path("leave.md").write_text("# Leave\n\n## Parents\n\nThe cobalt rule grants ninety days.\n")
    Path("plan.pdf").write_bytes(_plan())
    assert svc("upload", "leave.md", "plan.pdf", "-b", "handbook", "--tag", "hr").exit == 0
    return svc


def _source(here: RunSvc, title: str) -> Json:
    (found,) = here("source", "ls", "-b", "handbook", "--title", title, "--json").json["sources"]
    return dict(found)


def _words(finished: Finished, *expected: str) -> None:
    assert finished.exit == 0, finished.stderr
    for word in expected:
        assert word in finished.stdout


def test_search_names_file_lines_headings_and_pages(here: RunSvc) -> None:
    _words(here("search", "cobalt rule", "-b", "handbook"), "leave.md", "line", "Leave > Parents", "ninety days")
    _words(here("search", "umber plan", "-b", "handbook"), "plan.pdf", "page 2")
    explained = here("search", "cobalt rule", "-b", "handbook", "-k", "1", "--explain")
    _words(explained, "found by", "bm25", "covers 100% of the query", "- cobalt", "in text")


def test_search_takes_its_bucket_from_the_settings(here: RunSvc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SVC_BUCKET", "no-such-bucket")
    assert here("search", "cobalt").exit == 5
    monkeypatch.setenv("SVC_BUCKET", "handbook")
    assert here("search", "cobalt", "--json").json["data"][0]["filename"] == "leave.md"


def test_the_help_of_mcp_tells_of_every_tool(svc: RunSvc) -> None:
    told = " ".join(svc("mcp", "--help").stdout.split())
    verbs = {
        "svc-upload-file": "upload a file",
        "svc-upload-files-batch": "or several",
        "svc-source-status": "whether they are ready",
        "svc-list-buckets": "list buckets",
        "svc-search": "search",
        "svc-ask": "ask",
    }
    assert set(verbs) == {tool.name for tool in TOOLS}
    assert [verb for verb in verbs.values() if verb not in told] == []


def test_a_search_needs_no_quotes(here: RunSvc) -> None:
    page = here("search", "cobalt", "-b", "handbook", "rule", "--json").json
    assert (page["query"], page["data"][0]["filename"]) == ("cobalt rule", "leave.md")
    answer = here("ask", "what", "does", "the", "cobalt", "rule", "grant", "-b", "handbook", "--json").json
    assert "leave.md" in {source["filename"] for source in answer["sources"]}


def test_each_hit_and_each_source_is_a_line_of_its_own(here: RunSvc) -> None:
    for words, rows, name in (
        (("search", "rule", "plan"), "data", "source_id"),
        (("source", "ls"), "sources", "id"),
    ):
        page = here(*words, "-b", "handbook", "--json").json
        *lines, last = map(json.loads, here(*words, "-b", "handbook", "--ndjson").stdout.splitlines())
        assert [line[name] for line in lines] == [row[name] for row in page[rows]]
        assert set(last) == set(page) - {rows}


def test_quiet_leaves_results_and_errors(here: RunSvc) -> None:
    Path("calm.md").write_text("Words of calm.")
    loud, calm = here("upload", "calm.md", "-b", "calm-1"), here("upload", "calm.md", "-b", "calm-2", "-q")
    assert "created the bucket calm-1" in loud.stderr
    assert (calm.stderr, "calm.md" in calm.stdout) == ("", True)
    assert "error:" in here("source", "show", "nothing", "-q").stderr


def test_search_options_reach_the_service(here: RunSvc) -> None:
    one = here("search", "rule plan", "-b", "handbook", "-k", "1", "--mode", "keyword", "--explain", "--json").json
    assert len(one["data"]) == 1
    assert one["data"][0]["explain"]
    assert here("search", "rule", "-b", "handbook", "--tag", "none", "--json").json["data"] == []
    assert here("search", "rule", "-b", "handbook", "-k", "51").exit == 2
    _words(here("search", "zzzunknownword", "-b", "handbook"), "nothing found")


def test_status_of_all_of_one_bucket_and_of_one_source(here: RunSvc) -> None:
    _words(here("status"), "handbook")
    _words(here("status", "-b", "handbook"), "handbook", "active")
    source = _source(here, "leave.md")
    _words(here("status", source["id"]), "ready", "leave.md")
    assert here("status", source["id"], "--json").json["ready"] is True
    _words(here("status", source["id"], "-b", "handbook"), "ready", "leave.md")
    assert here("status", "src_missing").exit == 5


def test_status_names_what_failed_and_why(here: RunSvc) -> None:
    Path("broken.pdf").write_bytes(b"%PDF-1.7\nnothing")
    here("upload", "broken.pdf", "-b", "broken")
    _words(here("status", "-b", "broken"), "broken.pdf", "document_unreadable")
    assert [each["status"] for each in here("status", "-b", "broken", "--json").json["sources"]] == ["failed"]
    assert here("status", "-b", "broken", "--watch").exit == 0


def test_a_source_is_shown_and_read(here: RunSvc) -> None:
    source = _source(here, "plan.pdf")
    _words(here("source", "show", source["id"], "--verify"), "plan.pdf", "STATE_ACTIVE", "application/pdf")
    _words(here("source", "text", source["id"]), "umber plan")
    _words(here("source", "text", source["id"], "--chunks"), "page 2")


def test_sources_are_filtered_and_paged(here: RunSvc) -> None:
    titles = [each["title"] for each in here("source", "ls", "-b", "handbook", "--json").json["sources"]]
    assert sorted(titles) == ["leave.md", "plan.pdf"]
    first = here("source", "ls", "-b", "handbook", "--limit", "1", "--json").json
    second = here("source", "ls", "-b", "handbook", "--limit", "1", "--after", first["last_id"], "--json").json
    assert [each["title"] for each in first["sources"] + second["sources"]] == titles
    assert [
        each["title"] for each in here("source", "ls", "-b", "handbook", "--match", "leave", "--json").json["sources"]
    ] == ["leave.md"]


def test_a_source_moves_between_buckets_and_goes(here: RunSvc) -> None:
    Path("moving.md").write_text("The russet words that move.")
    here("upload", "moving.md", "-b", "moving")
    here("bucket", "create", "second")
    source_id = here("source", "ls", "-b", "moving", "--json").json["sources"][0]["id"]
    assert here("source", "attach", source_id, "-b", "second", "--dry-run", "--json").json["dry_run"] is True
    assert len(here("source", "attach", source_id, "-b", "second", "--json").json["bucket_ids"]) == 2
    assert len(here("source", "detach", source_id, "-b", "moving", "--json").json["bucket_ids"]) == 1
    assert here("source", "rm", source_id, "--dry-run").exit == 0
    assert here("source", "show", source_id).exit == 0
    _words(here("source", "rm", source_id, "--force"), f"deleted {source_id}")
    assert here("source", "show", source_id).exit == 5


def test_only_a_failed_source_is_retried(here: RunSvc) -> None:
    Path("cut.pdf").write_bytes(b"%PDF-1.7\nnothing")
    here("upload", "cut.pdf", "-b", "cut")
    source_id = here("source", "ls", "-b", "cut", "--json").json["sources"][0]["id"]
    assert here("source", "retry", source_id, "--json").json["status"] == "queued"
    waited = here("wait", source_id, "--json")
    assert (waited.exit, waited.json["counts"]["failed"]) == (3, 1)
    assert waited.json["error"]["code"] == "document_unreadable"
    assert here("source", "retry", _source(here, "leave.md")["id"]).exit == 3


def test_wait_knows_missing_sources_and_time(here: RunSvc) -> None:
    assert here("wait", "src_missing", "--json").json["error"]["code"] == "source_not_found"
    assert here("wait", _source(here, "leave.md")["id"], "--timeout", "1s").exit == 0


def test_lists_of_buckets_leave_the_ids_of_their_members_out(here: RunSvc) -> None:
    here("bucket", "create", "counted")
    views = here("bucket", "ls", "--json").json["buckets"] + here("status", "--json").json["buckets"]
    views.append(here("status", "-b", "counted", "--json").json["bucket"])
    assert all("memberCount" in view and "knowledgeIds" not in view for view in views)
    assert here("bucket", "show", "counted", "--json").json["knowledgeIds"] == []


def test_buckets_are_made_shown_archived_and_restored(here: RunSvc) -> None:
    assert here("bucket", "create", "fresh", "--dry-run", "--json").json["dry_run"] is True
    assert here("bucket", "show", "fresh").exit == 5
    assert here("bucket", "create", "fresh", "--name", "Fresh", "--meta", "a=b", "--json").json["created"] is True
    assert here("bucket", "create", "fresh", "--json").json["created"] is False
    _words(here("bucket", "show", "fresh"), "Fresh", "a=b")
    assert here("bucket", "create", "Not A Slug").exit == 3
    here("bucket", "archive", "fresh")
    assert "fresh" not in here("bucket", "ls", "--names").stdout.split()
    assert "fresh" in here("bucket", "ls", "--names", "--all").stdout.split()
    assert here("bucket", "archive", "fresh", "--restore", "--json").json["status"] == "active"


def test_what_destroys_names_its_flag_where_nobody_can_be_asked(here: RunSvc) -> None:
    _words(here("bucket", "rm", "handbook", "--dry-run"), "would delete handbook")
    for words in (("bucket", "rm", "handbook"), ("source", "rm", "leave.md", "-b", "handbook")):
        refused = here(*words, "--json")
        assert (refused.exit, refused.json["error"]["code"]) == (2, "svc_usage")
        assert "--force" in refused.json["error"]["hint"]
    assert here("source", "show", "leave.md", "-b", "handbook").exit == 0
    assert here("bucket", "show", "handbook").exit == 0


def test_deleting_a_bucket_can_be_waited_for(here: RunSvc) -> None:
    here("bucket", "create", "doomed")
    here("upload", "-", "--title", "doomed.txt", "-b", "doomed", stdin=b"Doomed words.")
    ended = here("bucket", "rm", "doomed", "--force", "--wait", "--json")
    assert (ended.exit, ended.json["status"], ended.json["deletion"]["deleted"]) == (0, "deleted", 1)
    assert here("bucket", "show", "doomed").exit == 5
    here("bucket", "create", "doomed")
    _words(here("bucket", "rm", "doomed", "--force"), "deleting doomed", "0 sources")


def test_the_key_in_use_is_told_to_scripts_and_masked_for_people(
    here: RunSvc, shared_installation: Installation
) -> None:
    assert here("auth", "token").stdout.strip() == shared_installation.key
    shown = here("auth", "status")
    _words(shown, "accepted")
    assert shared_installation.key not in shown.stdout
    assert shared_installation.key not in here("config", "list", "--explain").stdout
