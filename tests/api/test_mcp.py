"""The tools at `/mcp`, called through the `mcp` client: a whole upload, descriptions, errors, repeats and batches."""

import json
from base64 import encodebytes
from dataclasses import replace
from typing import Any

import pytest

from svc_daemon.api.mcp import Routes, message_bytes
from svc_daemon.core.json_bodies import MAX_ENTRIES
from svc_daemon.databases.contract import Connection
from svc_daemon.tools.api_calls import CallFailed, File
from svc_daemon.tools.batches import BATCHES
from svc_daemon.tools.files import UPLOADS
from svc_daemon.wire.light.extras import install_command
from tests.api.answers import details_of
from tests.api.daemons import NOTES, UNLIMITED, Daemon
from tests.api.fixtures import MakeDaemon
from tests.api.sessions import session_body, session_path, sha256_of
from tests.api.tool_callers import HEAD, Caller, post, refused, without_library
from tests.tools import NAMES, data_of, encoded, see_the_whole_job, text_of

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
    ("svc-search", {"query": "x", "maxNumResults": 51}, "maxNumResults"),
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


@pytest.mark.parametrize(("tool", "arguments", "path"), WRONG)
def test_error_names_the_wrong_argument(shared: Daemon, tool: str, arguments: dict[str, Any], path: str) -> None:
    error = refused(shared, tool, **arguments)
    paths = [each["path"] for each in error["details"]["errors"]]
    assert (error["code"], paths) == ("invalid_request", [path])
    assert shared.members(status="all") == []


@pytest.mark.rule("legacy.tools")
@pytest.mark.parametrize(("arguments", "code"), REFUSED)
def test_upload_that_the_api_refuses_fails_with_the_code_of_the_api(
    shared: Daemon, arguments: dict[str, Any], code: str
) -> None:
    assert refused(shared, UPLOAD, **{**FILE, **arguments})["code"] == code
    assert shared.members(status="all") == []


def test_error_of_the_api_names_the_arguments_of_the_tool(shared: Daemon) -> None:
    missing = refused(shared, UPLOAD, **{**FILE, "bucketSlugs": ["nowhere"]})
    assert "createMissingBuckets" in missing["message"]
    assert missing["code"] == "bucket_assignment_failed"


def test_unexpected_error_is_reported_without_its_details(daemon: Daemon) -> None:
    daemon.write(lambda connection: connection.execute("ALTER TABLE buckets RENAME COLUMN metadata TO gone"))
    error = Caller(daemon).refuse("svc-list-buckets")
    assert (error["code"], error["details"], "JSON" in error["message"]) == ("internal_error", {}, False)


@pytest.fixture
def tools(daemon: Daemon) -> Caller:
    return Caller(daemon)


# Repeated calls


@pytest.mark.rule("legacy.tools")
def test_repeated_upload_is_replayed_and_stores_no_second_source(tools: Caller) -> None:
    first = tools.upload(NOTES, title="Notes", tags=["a"], metadata={"year": 1802})
    again = tools.upload(NOTES, title="Notes", tags=["a"], metadata={"year": 1802}, bucket="", bucketSlugs=["inbox"])
    assert (first["replayed"], again["replayed"], again["source_id"]) == (False, True, first["source_id"])
    assert tools.upload(NOTES, title="Others")["source_id"] != first["source_id"]
    lines = encodebytes(NOTES * 9).decode()
    assert lines.count("\n") > 1
    assert tools.upload(b"", contentBase64=lines.replace("\n", "\r\n"))["size_bytes"] == len(NOTES * 9)
    source = tools.daemon.source(first["source_id"])
    assert (source["title"], source["tags"], source["metadata"]) == ("Notes", ["a"], {"year": 1802})


def test_deleted_or_detached_file_can_be_uploaded_again(working: Daemon) -> None:
    tools = Caller(working)
    ids = [tools.upload(NOTES)["source_id"]]
    for path in ("/v1/sources/{}", "/v1/buckets/inbox/sources/{}", "/v1/buckets/inbox?force=true"):
        assert working.ask("DELETE", path.format(ids[-1])).is_success
        if "force" in path:
            working.wait(lambda: working.ask("GET", "/v1/buckets/inbox").status_code == 404, "the bucket is deleted")
        new = tools.upload(NOTES, bucket="", bucketSlugs=["inbox"], createMissingBuckets=True)
        assert (new["source_id"] in ids, new["replayed"]) == (False, False), path
        assert tools.upload(NOTES)["source_id"] == new["source_id"]
        ids.append(new["source_id"])


def test_idempotency_key_with_other_content_or_of_a_deleted_source_is_refused(tools: Caller) -> None:
    first = tools.upload(NOTES, idempotencyKey="k")["source_id"]
    assert tools.upload(NOTES, idempotencyKey="k")["source_id"] == first
    error = tools.refuse("svc-upload-file", **{**FILE, "contentBase64": "eA=="}, bucket="inbox", idempotencyKey="k")
    assert error["code"] == "idempotency_key_conflict"
    assert tools.daemon.ask("DELETE", f"/v1/sources/{first}").is_success
    error = tools.refuse("svc-upload-file", **FILE, bucket="inbox", idempotencyKey="k")
    assert (error["code"], "another key" in error["message"]) == ("source_not_found", True)


def test_interrupted_upload_is_finished_by_the_next_call(tools: Caller) -> None:
    body = session_body(sha256=sha256_of(NOTES), bucket="inbox")
    opened = tools.daemon.post(UPLOADS, 201, json=body, repeat_key="k")
    tools.upload(NOTES, idempotencyKey="k")
    assert len(tools.daemon.members(status="all")) == 1
    assert tools.daemon.show(session_path(opened))["status"] == "finalized"


def test_failed_file_uploaded_again_is_retried_only_if_the_error_is_retryable(tools: Caller) -> None:
    source_id = tools.upload(NOTES)["source_id"]
    error = '{"code": "extraction_crashed", "message": "x", "retryable": %s}'
    for retryable, status in (("false", "failed"), ("true", "queued")):
        tools.daemon.write(lambda connection: _fail(connection, source_id, error % retryable))  # noqa: B023
        again = tools.upload(NOTES)
        assert (again["source_id"], again["status"], again["replayed"]) == (source_id, status, True)


def _fail(connection: Connection, source_id: str, error: str) -> None:
    connection.execute(
        "UPDATE sources SET status = 'failed', error = :error WHERE id = :id", {"error": error, "id": source_id}
    )
    connection.execute("UPDATE tasks SET status = 'failed' WHERE source_id = :id", {"id": source_id})


# Batches


def files(*texts: str) -> list[dict[str, Any]]:
    return [{"filename": f"{text}.md", "contentBase64": encoded(text.encode())} for text in texts]


def test_batch_reports_the_result_of_each_file_in_order(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon(limits=replace(UNLIMITED, file_bytes=100))
    daemon.make_bucket()
    large = {"filename": "large.md", "contentBase64": encoded(b"x" * 101)}
    sent = [*files("one", "two"), large, *files("four")]
    result = Caller(daemon).call("svc-upload-files-batch", bucket="inbox", files=sent)
    batch = data_of(result)
    assert (batch["stored"], batch["failed"]) == (3, 1)
    reported = [(file["filename"], file["error"] and file["error"]["code"]) for file in batch["files"]]
    assert reported == [("one.md", None), ("two.md", None), ("large.md", "file_too_large"), ("four.md", None)]
    assert {file["source_id"] for file in batch["files"] if file["source_id"]} == set(daemon.members(status="all"))
    assert "large.md was not stored: file_too_large" in text_of(result)
    assert daemon.show(f"/v1/knowledge/batches/{batch['batch_id']}")["counters"]["total"] == 3


def test_file_of_a_batch_that_can_not_be_read_is_reported_and_the_others_are_stored(
    tools: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def read(_calls: Routes, path: str) -> File:
        if path != "docs/here.md":
            raise CallFailed({"code": "svc_path_not_found", "message": f"no {path}", "retryable": False, "details": {}})
        return File("here.md", b"here")

    monkeypatch.setattr(Routes, "read_file", read)
    gone, here = {"path": "docs/gone.md"}, {"path": "docs/here.md"}
    batch = tools.data("svc-upload-files-batch", bucket="inbox", files=[gone, *files("one"), here, gone])
    assert (batch["stored"], batch["failed"]) == (2, 2)
    reported = [(file["filename"], file["error"] and file["error"]["code"]) for file in batch["files"]]
    lost = ("gone.md", "svc_path_not_found")
    assert reported == [lost, ("one.md", None), ("here.md", None), lost]
    assert tools.refuse("svc-upload-files-batch", bucket="inbox", files=[gone])["code"] == "svc_path_not_found"


def test_bytes_of_a_batch_are_sent_in_one_request(tools: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[bytes] = []
    send = Routes.send_bytes

    async def watch(calls: Routes, upload_url: str, data: bytes) -> None:
        sent.append(data)
        await send(calls, upload_url, data)

    monkeypatch.setattr(Routes, "send_bytes", watch)
    batch = tools.data("svc-upload-files-batch", bucket="inbox", files=files("one", "two", "three"))
    assert (batch["stored"], sent) == (3, [b"onetwothree"])


def test_files_of_a_refused_pack_are_sent_one_by_one(tools: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[bytes] = []
    send = Routes.send_bytes

    async def spoil(calls: Routes, upload_url: str, data: bytes) -> None:
        # The service refuses a wrong token.
        await send(calls, upload_url + "0" * ("/bat_" in upload_url), data)
        sent.append(data)

    monkeypatch.setattr(Routes, "send_bytes", spoil)
    batch = tools.data("svc-upload-files-batch", bucket="inbox", files=files("one", "two", "three"))
    assert (batch["stored"], sorted(sent)) == (3, [b"one", b"three", b"two"])


def test_repeated_batch_stores_only_deleted_files_again(tools: Caller) -> None:
    def upload() -> list[dict[str, Any]]:
        return list(tools.data("svc-upload-files-batch", bucket="inbox", files=files("one", "two"))["files"])

    first, second = (file["source_id"] for file in upload())
    assert [(file["source_id"], file["replayed"]) for file in upload()] == [(first, True), (second, True)]
    assert tools.daemon.ask("DELETE", f"/v1/sources/{first}").is_success
    for is_known in (False, True):
        assert [file["replayed"] for file in upload()] == [is_known, True]
    assert len(tools.daemon.members(status="all")) == 2
    for key in ("", "two words", "a\n", "é"):
        error = tools.refuse("svc-upload-files-batch", bucket="inbox", files=files("one"), idempotencyKey=key)
        assert error["code"] == "invalid_idempotency_key", key


def test_interrupted_batch_is_finished_by_the_next_call(tools: Caller) -> None:
    sent = [({"client_file_id": f"file-{n}", "filename": f"{text}.md"}, text) for n, text in ((1, "one"), (2, "two"))]
    items = [file | {"sha256": sha256_of(text.encode())} for file, text in sent]
    sizes = [file | {"size_bytes": 3} for file, _ in sent]
    body = {"manifest": {"version": 1, "items": items, "bucket": "inbox"}, "files": sizes}
    opened = tools.daemon.post(BATCHES, 201, json=body, repeat_key="k")
    assert tools.daemon.ask("PUT", opened["items"][0]["upload_url"], content=b"one", key="").is_success
    batch = tools.data("svc-upload-files-batch", bucket="inbox", files=files("one", "two"), idempotencyKey="k")
    assert (batch["batch_id"], batch["stored"]) == (opened["batch_id"], 2)
    assert len(tools.daemon.members(status="all")) == 2


@pytest.mark.rule("legacy.tools")
def test_files_of_a_batch_may_name_different_buckets(tools: Caller) -> None:
    sent = [{**file, "bucketSlugs": [file["filename"][:3]]} for file in files("one", "two")]
    stored = tools.data("svc-upload-files-batch", files=sent, createMissingBuckets=True)["files"]
    members = [tools.daemon.members(slug, status="all") for slug in ("one", "two")]
    assert members == [[file["source_id"]] for file in stored]
    assert tools.refuse("svc-upload-files-batch", files=files("one"))["code"] == "bucket_required"


# Status and search


def test_waiting_ends_when_every_file_is_ready_or_failed(working: Daemon) -> None:
    tools = Caller(working)
    ids = [tools.upload(text)["source_id"] for text in (b"one word", b"another word", b"\x00\x01\x02\x03")]
    states = tools.wait(*ids)
    assert (states["ready"], states["settled"]) == (False, True)
    assert [source["ready"] for source in states["sources"]] == [True, True, False]
    assert states["sources"][2]["error"]["code"]


def test_waiting_stops_at_the_timeout(tools: Caller) -> None:
    source_id = tools.upload(NOTES)["source_id"]  # no worker runs
    result = tools.call("svc-source-status", sourceId=source_id, waitSeconds=0.1)
    assert (data_of(result)["settled"], "Call again" in text_of(result)) == (False, True)


def test_search_applies_scopes_and_filters_and_an_answer_without_results_is_not_grounded(working: Daemon) -> None:
    tools = Caller(working)
    kept = tools.upload(b"The umber quay.", filename="a.md", tags=["kept"], metadata={"year": 1802})["source_id"]
    tools.upload(b"The umber quay!", filename="b.md", metadata={"year": 1900})
    tools.wait(*working.members(status="all"))
    year = {"type": "lt", "key": "year", "value": 1850}
    narrowings = ({"tags": ["kept"]}, {"filters": year}, {"sourceIds": [kept]}, {"maxNumResults": 1, "filters": year})
    for narrowed in narrowings:
        found = tools.data("svc-search", query="umber quay", **narrowed)
        assert [result["source_id"] for result in found["results"]] == [kept], narrowed
    none = tools.call("svc-search", query="zeppelin", buckets=["inbox"])
    assert (data_of(none)["results"], text_of(none)) == ([], "Nothing was found.")
    asked = tools.call("svc-ask", question="Who flew the zeppelin over Garrowby?", buckets=["inbox"])
    assert (data_of(asked)["grounded"], data_of(asked)["citations"]) == (False, [])
    assert "Not grounded" in text_of(asked)


def test_buckets_are_listed_page_by_page(tools: Caller) -> None:
    tools.daemon.make_bucket("second")
    first = tools.data("svc-list-buckets", limit=1)
    assert (len(first["buckets"]), first["has_more"]) == (1, True)
    rest = tools.data("svc-list-buckets", after=first["last_id"])
    assert {bucket["slug"] for bucket in (*first["buckets"], *rest["buckets"])} == {"inbox", "second"}
