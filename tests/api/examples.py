"""For each route the calls that show every answer it may give. A new route needs an example here, or a test fails."""

from collections import defaultdict
from collections.abc import Callable

from svc_daemon.api.endpoints import Endpoint
from tests.api import aliases
from tests.api.daemons import NOTES
from tests.api.sessions import batch_body, pack_body, session_body
from tests.api.stages import FINALIZE, Call, Stage

Example = Callable[[Stage], Call]
Route = tuple[str, str]

B, S, W, K = "/v1/buckets/{bucket}", "/v1/sources/{source_id}", "/v1/webhooks", "/v1/keys"
C = "/v1/console/sessions"
A, BATCH, TASK = "/v1/agents/{agent_id}", "/v1/knowledge/batches/{batch_id}", "/v1/knowledge/tasks/{task_id}"
#: The header of a part of an upload.
FIRST_NINE = {"Content_Range": f"bytes 0-8/{len(NOTES)}"}
FILES = [("a", NOTES)]
U, STORAGE = B + "/uploads/{session_id}", "/v1/storage/{session_id}/{token}"

#: By route. The first one of each is what a test of its refusals starts from; it can be sent with a key.
EXAMPLES: dict[Route, list[Example]] = defaultdict(list)


def name_of(row: Endpoint) -> str:
    return f"{row.method} {row.path}"


def example(method: str, path: str, make: Callable[[Stage, Call], Call] | None = None) -> None:
    """Note one; `make` fills the bare call."""
    bare = Call(method, path)
    EXAMPLES[method, path].append(lambda stage: make(stage, bare) if make else bare)


def creating(method: str, path: str, make: Callable[[Stage, Call], Call]) -> None:
    """Note the three answers of a create: the first time, again with the same key, and dry."""
    example(method, path, make)
    example(method, path, lambda stage, call: _sent(stage, make(stage, call).naming(Idempotency_Key=stage.name())))
    example(method, path, lambda stage, call: make(stage, call).asking(dry_run="true"))


def _sent(stage: Stage, call: Call) -> Call:
    """The same call, which has been sent once."""
    assert stage.send(call).is_success
    return call


for path in ("/healthz", "/metrics", "/openapi.json", "/v1/version", "/v1/limits", W + "/secret", W + "/deliveries"):
    example("GET", path)
for path in ("/v1/buckets", aliases.BUCKETS, K, "/v1/agents"):
    example("GET", path)
    example("GET", path, lambda _, call: call.asking(limit="1"))

creating("POST", "/v1/buckets", lambda stage, call: call.sending(slug=stage.name("slug")))
example("PUT", B, lambda stage, call: call.at(bucket=stage.name("slug")))
example("PUT", B, lambda stage, call: call.at(bucket=stage.bucket()))
example("PUT", B, lambda stage, call: call.at(bucket=stage.name("slug")).sending(dry_run=True))
example("GET", B, lambda stage, call: call.at(bucket=stage.bucket()))
example("PATCH", B, lambda stage, call: call.at(bucket=stage.bucket()).sending(name="x"))
example("DELETE", B, lambda stage, call: call.at(bucket=stage.bucket()).asking(force="true"))

creating("POST", B + "/files", lambda stage, call: call.at(bucket=stage.bucket()).but(files={"file": ("a.md", NOTES)}))
creating("POST", B + "/files/import", lambda stage, call: call.at(bucket=stage.bucket()).sending(url=stage.file_url()))
creating("POST", B + "/pages", lambda stage, call: call.at(bucket=stage.bucket()).sending(url=stage.page_url()))
creating("POST", B + "/qa", lambda stage, call: call.at(bucket=stage.bucket()).sending(question="Why?", answer="So."))
creating("POST", B + "/uploads", lambda stage, call: call.at(bucket=stage.bucket()).but(json=session_body()))
creating("POST", B + "/batches", lambda stage, call: call.at(bucket=stage.bucket()).but(json=batch_body(FILES)))
example("POST", B + "/batches", lambda stage, call: call.at(bucket=stage.bucket()).but(json=pack_body(FILES)))

example("GET", U, lambda stage, call: call.at(**stage.session()[0]))
example("DELETE", U, lambda stage, call: call.at(**stage.session()[0]))
example("POST", FINALIZE, lambda stage, call: call.at(**stage.uploaded()))
example("POST", FINALIZE, lambda stage, call: call.at(**stage.finalized()))
example("POST", FINALIZE, lambda stage, call: call.at(**stage.uploaded()).asking(dry_run="true"))
example("PUT", STORAGE, lambda stage, call: call.at(**stage.session()[0]).but(content=NOTES))
example("PUT", STORAGE, lambda stage, call: call.at(**stage.pack(FILES)).but(content=NOTES))
example("PUT", STORAGE, lambda stage, call: call.at(**stage.session()[0]).but(content=NOTES[:9]).naming(**FIRST_NINE))
example("OPTIONS", STORAGE, lambda stage, call: call.at(**stage.session()[0]))
example("POST", B + "/batches/{batch_id}/finalize", lambda stage, call: call.at(**stage.batch()))
example("POST", B + "/batches/{batch_id}/finalize", lambda stage, call: call.at(**stage.batch()).sending(dry_run=True))
example("GET", BATCH, lambda stage, call: call.at(**stage.batch()))
example("GET", BATCH, lambda stage, call: call.at(**stage.batch()).asking(include_items="true"))


creating("POST", aliases.SESSION, lambda stage, call: call.but(json=session_body(bucket=stage.bucket())))
creating("POST", aliases.BATCH, lambda stage, call: call.but(json=batch_body(FILES, bucket=stage.bucket())))
creating("POST", aliases.PAGE, lambda stage, call: call.sending(url=stage.page_url(), bucket=stage.bucket()))

creating("POST", K, lambda stage, call: call.sending(name=stage.name("key"), preset="read"))
example("POST", C)
example("POST", C + "/exchange", lambda stage, call: call.sending(code=stage.daemon.post(C, 201)["code"]))
example("DELETE", K + "/{key_id}", lambda stage, call: call.at(key_id=stage.made_key()))


def _member(stage: Stage, call: Call) -> Call:
    bucket, source_id = stage.ready()
    return call.at(bucket=bucket, source_id=source_id)


def _failing(stage: Stage, call: Call) -> Call:
    (bucket_id,) = stage.daemon.source(stage.failed())["bucket_ids"]
    return call.at(bucket=bucket_id)


example("GET", B + "/sources", _member)
example("GET", "/v1/sources", lambda stage, call: call.asking(ids=f"{stage.ready()[1]},src_missing"))
example("GET", B + "/sources", lambda stage, call: _member(stage, call).asking(sort="-title", limit="1"))
example("GET", B + "/sources", lambda stage, call: _failing(stage, call).asking(group_by="error_code"))
example("POST", B + "/retry", lambda stage, call: _failing(stage, call).sending(status="failed"))
example("GET", "/v1/status")
WATCHED = {"name": "docs", "bucket": "any", "state": "troubled", "troubles": ["The folder is gone."]}
example("PUT", "/v1/watchers/{watcher_id}", lambda _, call: call.at(watcher_id="w1").sending(mappings=[WATCHED]))
example("GET", "/v1/watchers")
example("GET", "/v1/events", lambda stage, call: call.asking(after="latest"))
example("GET", "/v1/events", lambda stage, call: call.asking(bucket=stage.ready()[0]))
example("GET", B + "/sources", lambda stage, call: _member(stage, call).asking(status="all", limit="1"))


def _attach(stage: Stage, call: Call) -> Call:
    return call.at(bucket=stage.bucket()).sending(source_id=stage.ready()[1])


example("POST", B + "/sources", _attach)
example("POST", B + "/sources", lambda stage, call: _attach(stage, call).sending(dry_run=True))
example("DELETE", B + "/sources/{source_id}", _member)

for path in (S, "/v1/knowledge/files/{source_id}"):
    example("GET", path, lambda stage, call: _member(stage, call).asking(verify="provider"))
    example("GET", path, _member)
example("PATCH", S, lambda stage, call: _member(stage, call).sending(title="x"))
example("DELETE", S, _member)
example("POST", S + "/retry", lambda stage, call: call.at(source_id=stage.failed()))
example("POST", S + "/refresh", lambda stage, call: call.at(source_id=stage.fetched(stage.file_url())))


def _changed(stage: Stage, call: Call) -> Call:
    source_id = stage.fetched(stage.file_url())
    stage.change_at_its_url(source_id)
    return call.at(source_id=source_id)


example("POST", S + "/refresh", _changed)
example("GET", S + "/content", _member)
example("GET", S + "/text", _member)
example("GET", S + "/text", lambda stage, call: _member(stage, call).asking(verify="content"))
example("GET", S + "/text", lambda stage, call: _member(stage, call).asking(vectors="true"))
OFFER = {"text_sha256": "0" * 64, "vector": "AACAPw=="}
example("GET", B + "/vectors", lambda stage, call: call.at(bucket=stage.bucket()))
example(
    "POST", B + "/vectors", lambda stage, call: call.at(bucket=stage.bucket()).sending(model="any@1", vectors=[OFFER])
)
example("GET", TASK, lambda stage, call: call.at(task_id=stage.daemon.task(stage.ready()[1])["id"]))
example("GET", W + "/deliveries", lambda stage, call: call.asking(source_id="x", limit="1"))
example("POST", W + "/deliveries/{delivery_id}/resend", lambda stage, call: call.at(delivery_id=stage.delivery()))
example("POST", W + "/secret/rotate")

creating("POST", "/v1/agents", lambda stage, call: call.sending(agent_id=stage.name("agent")))
example("GET", A, lambda stage, call: call.at(agent_id=stage.agent()))
example("PUT", A, lambda stage, call: call.at(agent_id=stage.agent()).sending(role="seller"))
example("DELETE", A, lambda stage, call: call.at(agent_id=stage.agent()))
for path in ("/v1/models", "/v1/rag-agent/models"):
    example("GET", path)
example("GET", "/v1/models/{model}", lambda stage, call: call.at(model=f"svc-agent:{stage.agent()}"))
example("POST", "/v1/search", lambda stage, call: call.sending(query="quay", buckets=[stage.ready()[0]], explain=True))
example("GET", "/v1/search", lambda stage, call: call.asking(q="umber quay", buckets=stage.ready()[0]))


def _asking(stage: Stage, call: Call) -> Call:
    """A question whose answer is in a bucket of its own."""
    asked = "Where is the umber quay?"
    question = {"messages": [{"role": "user", "content": asked}]} if "chat" in call.path else {"input": asked}
    return call.sending(model="svc-agent", buckets=[stage.ready()[0]], **question)


example("POST", "/v1/responses", _asking)
example("POST", "/v1/chat/completions", _asking)
QUOTE = {"number": 1, "quote": "The fee is 40 euros.", "headings": ["Fees"]}
example(
    "POST", "/v1/citations/verify", lambda stage, call: call.sending(text="The fee is 50 euros. [1]", quotes=[QUOTE])
)
