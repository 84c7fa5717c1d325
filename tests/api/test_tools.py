"""The tools through the `mcp` client: single and batch uploads, retries, status, search and bucket lists."""

from base64 import encodebytes
from dataclasses import replace
from typing import Any

import pytest

from svc_daemon.api.mcp import Routes
from svc_daemon.databases.contract import Connection
from svc_daemon.tools.batches import BATCHES
from svc_daemon.tools.files import UPLOADS
from tests.api.daemons import NOTES, UNLIMITED, Daemon
from tests.api.fixtures import MakeDaemon
from tests.api.sessions import session_body, session_path, sha256_of
from tests.api.tool_callers import Caller
from tests.tools import data_of, encoded, text_of

FILE = {"filename": "notes.md", "contentBase64": encoded(NOTES)}


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
