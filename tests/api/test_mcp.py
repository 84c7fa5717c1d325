"""The tools at `/mcp`, called through the `mcp` client: a whole upload, their descriptions and their errors."""

import json
from dataclasses import replace
from typing import Any

import pytest

from svc_daemon.api.mcp import message_bytes
from svc_daemon.core.json_bodies import MAX_ENTRIES
from svc_daemon.wire.light.extras import install_command
from tests.api.answers import details_of
from tests.api.daemons import NOTES, UNLIMITED, Daemon
from tests.api.fixtures import MakeDaemon
from tests.api.tool_callers import HEAD, Caller, post, refused, without_library
from tests.tools import NAMES, encoded, see_the_whole_job

FILE = {"filename": "notes.md", "contentBase64": encoded(NOTES)}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_pdf_is_uploaded_indexed_and_cited_by_page(make_daemon: MakeDaemon, mode: str) -> None:
    daemon = make_daemon()
    daemon.start()

    async def work() -> None:
        async with Caller(daemon, mode=mode).client() as client:
            await see_the_whole_job(client)

    daemon.loop.run(work())


def test_every_tool_is_listed_with_its_annotations_and_takes_no_file_path(shared: Daemon) -> None:
    listed = {tool.name: tool for tool in Caller(shared).tools()}
    assert set(listed) == NAMES
    for tool in listed.values():
        assert tool.annotations is not None
        uploads = tool.name.startswith("svc-upload")
        assert (tool.annotations.read_only_hint, tool.annotations.idempotent_hint) == (not uploads, True)
        assert tool.annotations.destructive_hint is False
        assert "path" not in json.dumps(tool.input_schema)


# Requests that fail before a tool is called


def test_request_with_a_bad_key_header_method_or_message_is_refused(shared: Daemon) -> None:
    for key in ("", "sk-wrong"):
        answer = post(shared, "svc-list-buckets", key=key)
        details_of(answer, "invalid_project_key")
        assert answer.headers["WWW-Authenticate"] == "Bearer"
    refusals = {"Host": "host_not_allowed", "Origin": "origin_not_allowed", "Content-Type": "unsupported_media_type"}
    for header, code in refusals.items():
        details_of(shared.ask("POST", "/mcp", content="{}", headers={**HEAD, header: "text/plain"}), code)
    for method in ("GET", "DELETE"):
        assert details_of(shared.ask(method, "/mcp"), "method_not_allowed")["allowed_methods"] == ["POST"]
    answer = shared.ask("POST", "/mcp", content="{", headers=HEAD)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32700)  # JSON-RPC's own code
    assert post(shared, "svc-delete-everything").json()["error"]["code"] == -32602


def test_client_that_does_not_accept_json_gets_json(shared: Daemon) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    answer = shared.ask("POST", "/mcp", json=message, headers={"Accept": "text/html"})
    assert {tool["name"] for tool in answer.json()["result"]["tools"]} == NAMES


def test_message_may_have_a_file_of_the_maximum_size_but_no_larger_one(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon(limits=replace(UNLIMITED, file_bytes=3000, json_bytes=2000))
    daemon.make_bucket()
    tools = Caller(daemon)
    assert tools.upload(b"x " * 1500)["size_bytes"] == 3000
    error = tools.refuse("svc-upload-file", bucket="inbox", filename="a.md", contentBase64=encoded(b"x" * 3001))
    assert (error["code"], error["details"]["max_bytes"]) == ("file_too_large", 3000)
    answer = post(daemon, "svc-upload-file", bucket="inbox", filename="a.md", contentBase64=encoded(b"x" * 5000))
    assert details_of(answer, "request_too_large")["max_bytes"] == message_bytes(daemon.limits)


def test_message_with_too_many_entries_is_refused_before_the_tool_is_called(daemon: Daemon) -> None:
    answer = post(daemon, "svc-upload-files-batch", bucket="inbox", files=[1] * MAX_ENTRIES)
    details_of(answer, "invalid_json")
    error = Caller(daemon).refuse("svc-upload-files-batch", bucket="inbox", files=[1] * 1000)
    assert (error["code"], len(error["details"]["errors"])) == ("invalid_request", 20)


def test_error_names_the_extra_to_install_if_the_library_is_missing(daemon: Daemon) -> None:
    with without_library():
        answer = post(daemon, "svc-list-buckets")
    assert details_of(answer, "extra_not_installed") == {"extra": "mcp"}
    assert install_command("mcp") in answer.json()["error"]["message"]


# Errors of the tools


def test_error_of_a_tool_has_its_request_id(daemon: Daemon) -> None:
    answer = post(daemon, "svc-source-status", sourceId="src_missing")
    assert answer.status_code == 200
    result = json.loads(answer.json()["result"]["content"][0]["text"])
    assert (result["error"]["code"], result["request_id"]) == ("source_not_found", answer.headers["X-Request-Id"])


def test_error_is_short_however_long_the_refused_arguments_are(shared: Daemon) -> None:
    name = "x" * 100_000
    arguments: list[dict[str, Any]] = [{"buckets": [name]}, {"agent": name}, {"buckets": list(range(5000))}]
    for answer in (post(shared, name), *(post(shared, "svc-search", query="a", **each) for each in arguments)):
        assert "error" in answer.text
        assert len(answer.content) < 10_000
    assert len(shared.search("a", buckets=[name]).content) < 10_000


UPLOAD, BATCH, INBOX = "svc-upload-file", "svc-upload-files-batch", {"bucket": "inbox"}
WRONG: list[tuple[str, dict[str, Any], str]] = [
    (UPLOAD, {**FILE, "contentBase64": "no base64"}, "contentBase64"),
    (UPLOAD, {**INBOX, "filename": "a.md"}, "contentBase64"),
    (UPLOAD, {**INBOX, "contentBase64": "eA=="}, "filename"),
    (UPLOAD, {**INBOX, "path": "/etc/hosts"}, "path"),
    (UPLOAD, {**FILE, **INBOX, "path": "/etc/hosts"}, "contentBase64"),
    (UPLOAD, {**FILE, **INBOX, "bucketSlugs": ["inbox"]}, "bucket"),
    (UPLOAD, {**FILE, **INBOX, "tags": "one"}, "tags"),
    (UPLOAD, {**FILE, **INBOX, "webhook": {"url": "http://x"}}, "webhook"),
    (BATCH, {**INBOX, "files": [FILE], "webhook": {"url": "http://x"}}, "webhook"),
    (BATCH, {**INBOX, "files": [FILE, {**FILE, "webhook": {"url": "http://x"}}]}, "files.1.webhook"),
    ("svc-search", {"query": "x", "agents": ["svc-agent"]}, "agents"),
    ("svc-ask", {"question": "x", "models": ["svc-agent"]}, "models"),
    (BATCH, {**INBOX, "files": []}, "files"),
    (BATCH, {**INBOX, "files": [FILE, {"filename": "b.md"}]}, "files.1.contentBase64"),
    (BATCH, {**INBOX, "files": [FILE, {**FILE, "path": "b.md"}]}, "files.1.contentBase64"),
    ("svc-search", {}, "query"),
    ("svc-search", {"query": "ferries", "buckts": ["inbox"]}, "buckts"),
    *(("svc-ask", {"question": question}, "question") for question in ("", " \n")),
    ("svc-search", {"query": "x", "team_id": "team_x"}, ""),
    ("svc-search", {"query": " "}, "query"),
    ("svc-search", {"query": "x", "maxNumResults": 51}, "max_num_results"),
    ("svc-search", {"query": "x", "maxNumResults": "0_1"}, "maxNumResults"),
    ("svc-search", {"query": "x", "scoreThreshold": " 0"}, "scoreThreshold"),
    ("svc-source-status", {"sourceId": "src_x", "waitSeconds": "0_1"}, "waitSeconds"),
    ("svc-list-buckets", {"limit": "+5"}, "limit"),
    ("svc-source-status", {}, "sourceId"),
    ("svc-source-status", {"sourceId": "src_x", "waitSeconds": 51}, "waitSeconds"),
    ("svc-source-status", {"sourceId": "../limits"}, ""),
]
#: Arguments of an upload that the API refuses, and the code of each refusal.
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({}, "bucket_required"),
    ({"bucketIds": ["bkt_nowhere"]}, "bucket_assignment_failed"),
    ({**INBOX, "contentBase64": ""}, "empty_file"),
    ({**INBOX, "tags": [f"t{n}" for n in range(21)]}, "too_many_tags"),
    ({**INBOX, "idempotencyKey": ""}, "invalid_idempotency_key"),
]


def test_error_names_the_wrong_argument(shared: Daemon) -> None:
    for tool, arguments, path in WRONG:
        error = refused(shared, tool, **arguments)
        paths = [each["path"] for each in error["details"]["errors"]]
        assert (error["code"], paths) == ("invalid_request", [path]), arguments
    assert shared.members(status="all") == []


@pytest.mark.rule("legacy.tools")
def test_upload_that_the_api_refuses_fails_with_the_code_of_the_api(shared: Daemon) -> None:
    for arguments, code in REFUSED:
        assert refused(shared, UPLOAD, **{**FILE, **arguments})["code"] == code, arguments
    assert shared.members(status="all") == []


def test_unexpected_error_is_reported_without_its_details(daemon: Daemon) -> None:
    daemon.write(lambda connection: connection.execute("ALTER TABLE buckets RENAME COLUMN metadata TO gone"))
    error = Caller(daemon).refuse("svc-list-buckets")
    assert (error["code"], error["details"], "JSON" in error["message"]) == ("internal_error", {}, False)
