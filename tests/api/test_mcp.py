"""The tools at `/mcp`, called by the `mcp` client: what they do, and how each refusal reaches a model."""

import json
from dataclasses import replace
from typing import Any

import pytest

from svc_daemon.api.mcp import message_bytes
from svc_daemon.core.json_bodies import MAX_ENTRIES
from tests.api.answers import details_of
from tests.api.daemons import NOTES, UNLIMITED, Daemon
from tests.api.fixtures import MakeDaemon
from tests.api.tool_callers import HEAD, Caller, post, refused, without_library
from tests.tools import NAMES, encoded, see_the_whole_job

FILE = {"filename": "notes.md", "contentBase64": encoded(NOTES)}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_pdf_is_uploaded_waited_for_and_cited_by_its_page(make_daemon: MakeDaemon, mode: str) -> None:
    daemon = make_daemon()
    daemon.start()

    async def work() -> None:
        async with Caller(daemon, mode=mode).client() as client:
            await see_the_whole_job(client)

    daemon.loop.run(work())


def test_the_tools_describe_themselves(shared: Daemon) -> None:
    listed = {tool.name: tool for tool in Caller(shared).tools()}
    assert set(listed) == NAMES
    for tool in listed.values():
        assert tool.annotations is not None
        uploads = tool.name.startswith("svc-upload")
        assert (tool.annotations.read_only_hint, tool.annotations.idempotent_hint) == (not uploads, True)
        assert tool.annotations.destructive_hint is False
        assert "path" not in json.dumps(tool.input_schema)


# What is wrong before a tool is reached


def test_what_is_wrong_before_a_tool_is_reached_is_refused_as_everywhere(shared: Daemon) -> None:
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
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32700)  # the protocol's own
    assert post(shared, "svc-delete-everything").json()["error"]["code"] == -32602


def test_a_client_that_names_no_type_that_it_takes_gets_json(shared: Daemon) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    answer = shared.ask("POST", "/mcp", json=message, headers={"Accept": "text/html"})
    assert {tool["name"] for tool in answer.json()["result"]["tools"]} == NAMES


def test_a_message_may_hold_a_file_of_the_most_bytes_and_no_more(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon(limits=replace(UNLIMITED, file_bytes=3000, json_bytes=2000))
    daemon.make_bucket()
    tools = Caller(daemon)
    assert tools.upload(b"x " * 1500)["size_bytes"] == 3000
    error = tools.refuse("svc-upload-file", bucket="inbox", filename="a.md", contentBase64=encoded(b"x" * 3001))
    assert (error["code"], error["details"]["max_bytes"]) == ("file_too_large", 3000)
    answer = post(daemon, "svc-upload-file", bucket="inbox", filename="a.md", contentBase64=encoded(b"x" * 5000))
    assert details_of(answer, "request_too_large")["max_bytes"] == message_bytes(daemon.limits)


def test_a_message_of_more_entries_than_any_call_needs_is_refused_unread(daemon: Daemon) -> None:
    answer = post(daemon, "svc-upload-files-batch", bucket="inbox", files=[1] * MAX_ENTRIES)
    details_of(answer, "invalid_json")
    error = Caller(daemon).refuse("svc-upload-files-batch", bucket="inbox", files=[1] * 1000)
    assert (error["code"], len(error["details"]["errors"])) == ("invalid_request", 20)


def test_without_the_library_the_error_names_what_to_install(daemon: Daemon) -> None:
    with without_library():
        answer = post(daemon, "svc-list-buckets")
    assert details_of(answer, "extra_not_installed") == {"extra": "mcp"}
    assert "pip install 'svc-knowledge[mcp]'" in answer.json()["error"]["message"]


# How a tool refuses


def test_a_tools_error_has_the_id_of_its_request(daemon: Daemon) -> None:
    answer = post(daemon, "svc-source-status", sourceId="src_missing")
    assert answer.status_code == 200
    result = json.loads(answer.json()["result"]["content"][0]["text"])
    assert (result["error"]["code"], result["request_id"]) == ("source_not_found", answer.headers["X-Request-Id"])


def test_an_error_repeats_only_so_much_of_what_was_sent(shared: Daemon) -> None:
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
    (UPLOAD, {**FILE, **INBOX, "webhook": {"url": "http://x"}}, ""),
    (BATCH, {**INBOX, "files": []}, "files"),
    (BATCH, {**INBOX, "files": [FILE, {"filename": "b.md"}]}, "files.1.contentBase64"),
    (BATCH, {**INBOX, "files": [FILE, {**FILE, "path": "b.md"}]}, "files.1.contentBase64"),
    ("svc-search", {}, "query"),
    ("svc-search", {"query": "x", "team_id": "team_x"}, ""),
    ("svc-search", {"query": " "}, "query"),
    ("svc-search", {"query": "x", "maxNumResults": 51}, "max_num_results"),
    ("svc-source-status", {}, "sourceId"),
    ("svc-source-status", {"sourceId": "src_x", "waitSeconds": 51}, "waitSeconds"),
    ("svc-source-status", {"sourceId": "../limits"}, ""),
]
#: What the API refuses of an upload, by code.
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({}, "bucket_required"),
    ({"bucketIds": ["bkt_nowhere"]}, "bucket_assignment_failed"),
    ({**INBOX, "contentBase64": ""}, "empty_file"),
    ({**INBOX, "tags": [f"t{n}" for n in range(21)]}, "too_many_tags"),
    ({**INBOX, "idempotencyKey": ""}, "invalid_idempotency_key"),
]


def test_wrong_arguments_are_named(shared: Daemon) -> None:
    for tool, arguments, path in WRONG:
        error = refused(shared, tool, **arguments)
        paths = [each["path"] for each in error["details"]["errors"]]
        assert (error["code"], paths) == ("invalid_request", [path]), arguments
    assert shared.members(status="all") == []


def test_what_the_api_refuses_is_refused_with_its_code(shared: Daemon) -> None:
    for arguments, code in REFUSED:
        assert refused(shared, UPLOAD, **{**FILE, **arguments})["code"] == code, arguments
    assert shared.members(status="all") == []


def test_what_nobody_expected_is_reported_without_its_words(daemon: Daemon) -> None:
    daemon.write(lambda connection: connection.execute("UPDATE buckets SET metadata = '{'"))
    error = Caller(daemon).refuse("svc-list-buckets")
    assert (error["code"], error["details"], "JSON" in error["message"]) == ("internal_error", {}, False)
