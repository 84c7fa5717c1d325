"""A program of another project: it uses each method of the Python client and relies on the types that they return.

It imports only `svc_cli.client`. mypy checks it against the built wheel, and a test runs it against a real daemon.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path

from svc_cli.client import BytesContent, Client, Description, ImportRequest, Member, NewFile, NotReady, answer_text
from svc_cli.client.transport import Request
from svc_cli.client.types import (
    AgentDict,
    BucketDict,
    CheckedQuotesDict,
    DeliveryDict,
    KeyDict,
    LogEventDict,
    OfferedVectorDict,
    SearchResultDict,
    SourceDict,
    TaskDict,
)

TEXT = b"# Leave\n\nThe cobalt rule grants ninety days of leave."


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def use_buckets(client: Client) -> str:
    bucket: BucketDict = client.ensure_bucket("library", name="Library", chunking={"target": 900})
    planned = client.ensure_bucket("planned", dry_run=True)
    assert "would_create" in planned
    client.ensure_bucket("old")
    changed = client.update_bucket("old", status="archived", metadata={"kept": True})
    names: list[str] = [each["slug"] for each in client.buckets(include_archived=True, members=False)["buckets"]]
    assert (changed["status"], sorted(names)) == ("archived", ["library", "old"])
    assert client.delete_bucket("old", force=True)["deletion"]["total"] == 0
    return bucket["id"]


def use_uploads(client: Client, bucket: str, folder: Path) -> list[str]:
    """Upload files in each way that the client offers, and return their ids."""
    path = folder / "leave.md"
    path.write_bytes(TEXT)
    first = client.upload_file(bucket, path, tags=["hr"], metadata={"year": 2026}, idempotency_key="leave-1")
    again = client.send_upload(
        bucket,
        NewFile(
            filename="leave.md", title="leave.md", tags=("hr",), metadata={"year": 2026}, data=TEXT, sha256=sha256(TEXT)
        ),
        "leave-1",
    )
    assert (again.is_replay, again.body["id"]) == (True, first["id"])
    second = client.upload(bucket, NewFile(filename="rest.md", title="rest.md", data=b"Rest days are blue."))
    data = b"Through a session. " * 9
    description = Description(filename="session.txt", title="session.txt", sha256=sha256(data))
    third = client.upload_content(bucket, description, BytesContent(data), "session-1")
    opened = client.open_upload(bucket, description, len(data), "session-2").body
    assert client.upload_status(bucket, opened["session_id"])["received_bytes"] == 0
    assert client.send_bytes(opened["upload_url"], BytesContent(data)) == len(data)
    fourth = client.finalize_upload(bucket, opened["session_id"]).body
    given_up = client.open_upload(bucket, description, len(data), "session-3").body
    assert client.cancel_upload(bucket, given_up["session_id"])["status"] == "canceled"
    return [first["id"], second["id"], third["id"], fourth["id"]]


def use_batches(client: Client, bucket: str) -> list[str]:
    contents = {f"{number}.md": b"The quay has %d cranes." % number for number in range(3)}
    members = [
        Member(Description(filename=name, title=name, sha256=sha256(data)), len(data))
        for name, data in contents.items()
    ]
    by_id = {member.client_file_id: contents[member.description.filename] for member in members}
    batch = client.open_batch(bucket, members, "night-1", pack=True).body
    pack = batch.get("pack")
    assert pack is not None
    client.send_bytes(
        pack["upload_url"], BytesContent(b"".join(by_id[item["client_file_id"]] for item in batch["items"]))
    )
    finalized = client.finalize_batch(bucket, batch["batch_id"])
    assert [finalized["pending"], finalized["failed"]] == [[], []]
    state = client.batch(batch["batch_id"], items=True)
    assert len(state.get("items", [])) == state["counters"]["total"] == 3
    return [item["knowledge_id"] for item in finalized["finalized"]]


def use_sources(client: Client, bucket: str, source_ids: list[str]) -> None:
    first, second, third, fourth, *_ = source_ids
    states = client.wait_until_ready(source_ids, timeout_s=60)
    assert {state["ready"] for state in states.values()} == {True}
    source: SourceDict = client.source(first, verify=True)
    assert client.source(first, verify=True).get("provider") is not None
    assert source["task"] is not None
    task: TaskDict = client.task(source["task"]["id"])
    assert (task["source_id"], source["error"], source["size_bytes"]) == (first, None, len(TEXT))
    assert b"".join(client.source_content(first)) == TEXT
    assert client.source_text(first)["chunks"][0]["location"]["line_start"] == 3
    # Without an embedding model, no passage has a vector, and offered vectors are not stored.
    assert client.source_vectors(first)["chunks"][0]["text"] in TEXT.decode()
    assert client.bucket_vectors(bucket)["model"] is None
    offer: OfferedVectorDict = {"text_sha256": "0" * 64, "vector": "AACAPw=="}
    assert client.offer_vectors(bucket, "another@model", [offer])["kept"] == 0
    assert client.read_source_again(first)["content"]["unchanged"] is True
    assert client.update_source(second, title="Rest", tags=["days"])["tags"] == ["days"]
    assert client.sources_page(bucket, {"limit": 2}).get("has_more") is True
    titles = {member["title"] for page in client.source_pages(bucket, {"status": "all"}) for member in page["sources"]}
    assert titles == {member["title"] for member in client.sources(bucket, status="all")}
    question = client.add_question(bucket, "Who rests?", "All do.", alternate_questions=["Is there rest?"]).body
    assert (question["type"], question["answer"]) == ("qa", "All do.")
    client.ensure_bucket("second")
    assert client.attach_source("second", third)["id"] == third
    assert client.detach_source("second", third)["bucket_ids"] == [client.bucket(bucket)["id"]]
    broken = client.upload(bucket, NewFile(filename="broken.pdf", title="broken.pdf", data=b"%PDF-1.7\nno page"))
    try:
        client.wait_until_ready(broken["id"], timeout_s=60)
    except NotReady as failed:
        assert list(failed.details["sources"]) == [broken["id"]]
        assert client.failures(bucket)["groups"][0]["count"] == 1
        assert client.retry_source(broken["id"])["id"] == broken["id"]
    assert client.retry_failed(bucket)["bucket_id"] == client.bucket(bucket)["id"]
    assert client.delete_source(fourth)["deleted"] is True


def use_searches(client: Client, bucket: str) -> None:
    page = client.search("cobalt rule", buckets=[bucket], mode="keyword", explain=True, max_num_results=3)
    best: SearchResultDict = page["data"][0]
    assert best["explain"] is not None
    assert (best["title"], best["explain"]["rank"]) == ("leave.md", 1)
    answer = client.ask("How many days does the cobalt rule grant?", buckets=[bucket])
    assert ("ninety" in answer_text(answer), answer["sources"][0]["title"]) == (True, "leave.md")
    quote = answer["sources"][0]["quote"]
    checked: CheckedQuotesDict = client.verify_citations(f"{quote} [1]", [{"number": 1, "quote": quote}])
    assert checked["object"] == "citation_checks"
    *_, last = client.ask_streaming("How many days does the cobalt rule grant?", buckets=[bucket])
    assert last["type"] == "response.completed"


def use_agents_and_keys(client: Client, bucket: str) -> None:
    agent: AgentDict = client.create_agent(agent_id="hr", name="HR", policy={"bucket_ids": [bucket], "top_k": 4})
    assert "would_create" in client.create_agent(agent_id="it", dry_run=True)
    assert client.update_agent("hr", role="helps")["policy"]["top_k"] == agent["policy"]["top_k"] == 4
    assert client.agent("hr")["agent_id"] in {each["agent_id"] for each in client.agents()["agents"]}
    assert agent["model"] in {model["id"] for model in client.models()["data"]}
    assert client.delete_agent("hr")["deleted"] is True
    made = client.create_key(name="reader", preset="read", buckets=[bucket])
    assert made["key"] is not None
    keys: list[KeyDict] = client.keys()["keys"]
    assert made["id"] in {key["id"] for key in keys}
    assert client.revoke_key(made["id"])["revoked_at"] is not None


def use_imports_and_webhooks(
    client: Client, bucket: str, origin: str, wait: Callable[[Callable[[], bool]], bool]
) -> None:
    """`origin` serves a file at `/ferries.md` and takes webhook calls at `/hook`."""
    wanted = ImportRequest(url=f"{origin}/ferries.md", webhook={"url": f"{origin}/hook"})
    assert "would_create" in client.import_url(bucket, wanted, dry_run=True).body
    source = client.import_url(bucket, wanted, idempotency_key="ferries-1").body
    client.wait_until_ready(source["id"], timeout_s=60)
    assert client.refresh_source(source["id"])["changed"] is False
    wait(lambda: any(each["status"] == "delivered" for each in client.deliveries({"limit": 5})["deliveries"]))
    delivery: DeliveryDict = client.deliveries()["deliveries"][0]
    assert client.resend_delivery(delivery["id"])["source_id"] == source["id"]
    assert client.rotate_webhook_secret()["previous_secret"] is not None
    assert client.webhook_secret()["secret"].startswith("whsec_")


def use_the_rest(client: Client) -> None:
    limits = client.limits()
    client.pace_creates(limits["limits"]["creates_per_second"]["value"])
    assert client.waiting_creates == 0
    assert client.version(verify="writing")["api_newest"] >= client.version()["api_oldest"]
    oldest: LogEventDict = client.events({"limit": 1})["data"][0]
    assert oldest["type"] == "bucket.created"
    assert client.status()["vectors"]["state"] == "off"
    assert client.report_watcher("laptop", [])["id"] == client.watchers()["data"][0]["id"] == "laptop"
    assert client.create_console_session()["code"].startswith("sc-")
    assert client.send(Request(method="GET", path="/healthz")).body["status"] == "ok"


def misuse(client: Client) -> None:
    """Mistakes that a type checker must report: mypy rejects each `type: ignore` that suppresses no error."""
    client.source("src_1")["titel"]  # type: ignore[typeddict-item]
    client.search("words", bucket="b")  # type: ignore[call-arg]
    client.search("words", max_num_results="10")  # type: ignore[arg-type]
    client.ensure_bucket("b", nam="B")  # type: ignore[call-overload]
    client.update_bucket("b", status="gone")  # type: ignore[arg-type]
    size: str = client.source("src_1")["size_bytes"]  # type: ignore[assignment]
    client.sources("b", titel="leave.md")  # type: ignore[call-arg]
    client.ask({"model": "svc-agent", "input": size})  # type: ignore[arg-type]
    client.upload_file("b", "leave.md", None)  # type: ignore[call-arg]
