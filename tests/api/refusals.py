"""For each error code how a call that works is spoiled so that it is refused with it, on whatever route.

A spoiler takes the stage and a call that would succeed, and returns what is answered to it once it is spoiled.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import httpx

from svc_daemon.api.forms import OVERHEAD_BYTES
from svc_daemon.api.middleware.error_responses import is_openai_path
from svc_daemon.core.access import api_keys
from svc_daemon.operations.agents import agent_lock
from svc_daemon.operations.shared.idempotency import key_lock
from svc_daemon.operations.shared.usage import used_answers
from svc_daemon.process import locks
from svc_daemon.provider.errors import ProviderFailed, SearchTimeout
from svc_daemon.store.rows.tasks import cancel_task
from svc_daemon.wire.light.error_codes import ErrorCode as E
from tests.api.daemons import NOTES
from tests.api.sessions import store_unseen
from tests.api.sites import PAGE, PDF
from tests.api.stages import Call, Stage
from tests.llm.chats import chatting, stalling, streaming
from tests.workers.rebuilds import begin

Spoiler = Callable[[Stage, Call], httpx.Response]

BLOCKED = "http://10.0.0.1/a.md"
UNRESOLVED = "http://nowhere.invalid/hook"
#: How the paths end of both doors for sessions, and for pages.
SESSIONS, PAGES = ("/uploads", "/upload-session"), ("/pages", "/websites")
SPOILERS: dict[E, Spoiler] = {}


def spoils(code: E) -> Callable[[Spoiler], Spoiler]:
    def note(spoiler: Spoiler) -> Spoiler:
        SPOILERS[code] = spoiler
        return spoiler

    return note


def changed(code: E, change: Callable[[Call], Call]) -> None:
    """Note a spoiler that sends the call changed."""
    SPOILERS[code] = lambda stage, call: stage.send(change(call))


def staged(code: E, change: Callable[[Stage, Call], Call]) -> None:
    """Note one whose change needs something from the stage."""
    SPOILERS[code] = lambda stage, call: stage.send(change(stage, call))


def _tags(call: Call) -> str | list[str]:
    tags = [f"tag{n}" for n in range(21)]
    return ",".join(tags) if "files" in call.options else tags


def _metadata(call: Call) -> str | dict[str, str]:
    return f'{{"a": "{"x" * 8200}"}}' if "files" in call.options else {"a": "x" * 8200}


changed(E.HOST_NOT_ALLOWED, lambda call: call.naming(Host="elsewhere.example"))
changed(E.ORIGIN_NOT_ALLOWED, lambda call: call.naming(Origin="https://elsewhere.example"))
changed(E.HEADERS_TOO_LARGE, lambda call: call.naming(X_Long="x" * 17_000))
changed(E.METHOD_NOT_ALLOWED, lambda call: replace(call, method="TRACE"))
changed(E.NOT_FOUND, lambda call: replace(call, path=f"{call.path}/and/more"))
changed(E.INVALID_REQUEST, lambda call: call.asking(team_id="team_other"))
changed(E.INVALID_JSON, lambda call: call.bare(b"{", "application/json"))
changed(E.INVALID_PROJECT_KEY, lambda call: call.but(key=""))
changed(E.INVALID_IDEMPOTENCY_KEY, lambda call: call.naming(Idempotency_Key="two words"))
changed(E.TASK_NOT_FOUND, lambda call: call.at(task_id="task_missing"))
changed(E.BATCH_NOT_FOUND, lambda call: call.at(batch_id="bat_missing"))
changed(E.SESSION_NOT_FOUND, lambda call: call.at(session_id="upl_missing"))
changed(E.KEY_NOT_FOUND, lambda call: call.at(key_id="key_missing"))
changed(E.AGENT_NOT_FOUND, lambda call: call.using("svc-agent:nobody"))
changed(E.MODEL_NOT_FOUND, lambda call: call.using("another-model"))
changed(E.INVALID_AGENT_PROFILE, lambda call: call.sending(policy={"scope": "everything"}))
changed(E.NO_UPDATES, lambda call: call.but(json={}))
changed(E.TOO_MANY_TAGS, lambda call: call.sending(tags=_tags(call)))
changed(E.METADATA_TOO_LARGE, lambda call: call.sending(metadata=_metadata(call)))
changed(E.BUCKET_REQUIRED, lambda call: call.into(""))
changed(E.BUCKET_ASSIGNMENT_FAILED, lambda call: call.into("nowhere"))
changed(E.FORCE_REQUIRED, lambda call: call.but(params={}))
changed(E.OFFSET_MISMATCH, lambda call: call.but(content=b"x").naming(Content_Range=f"bytes 5-5/{len(NOTES)}"))
changed(E.SIZE_MISMATCH, lambda call: call.naming(Content_Range="bytes 0-8/9"))
staged(E.AGENT_EXISTS, lambda stage, call: call.sending(agent_id=stage.agent()))
staged(E.MODEL_NOT_ALLOWED, lambda stage, call: call.using("svc-agent").but(key=stage.key_for("svc-agent:other")))
changed(E.EVENTS_EXPIRED, lambda call: call.asking(after="evt_missing"))
staged(E.BLOB_NOT_UPLOADED, lambda stage, call: call.at(**stage.session()[0]))


@spoils(E.FORBIDDEN_PROJECT_KEY)
def _forbidden(stage: Stage, call: Call) -> httpx.Response:
    # Any key may follow the events, but not ask what another one has done.
    call = call.asking(key="key_missing") if call.is_to("/events") else call
    only = api_keys.AGENT_READ if "webhooks" in call.path else api_keys.WEBHOOK_MANAGE
    return stage.send(call.but(key=stage.daemon.add_key(only)))


@spoils(E.REQUEST_TOO_LARGE)
def _body_too_large(stage: Stage, call: Call) -> httpx.Response:
    if "files" not in call.options:
        return stage.send(call.bare(b" " * (1024 * 1024 + 1), "application/json"))
    form = httpx.Request(call.method, "http://localhost", files=call.options["files"])
    whole = form.read() + b"x" * (OVERHEAD_BYTES + 100)

    async def chunks() -> AsyncIterator[bytes]:
        # With more behind the form than any form has, and no header that declares its length.
        yield whole

    with stage.limited(file_bytes=len(NOTES)):
        return stage.send(call.bare(b"", form.headers["Content-Type"]).but(content=chunks()))


@spoils(E.UNSUPPORTED_MEDIA_TYPE)
def _other_type(stage: Stage, call: Call) -> httpx.Response:
    is_raw = "content" in call.options
    return stage.send(call.naming(Content_Encoding="gzip") if is_raw else call.bare(b"{}", "text/plain"))


@spoils(E.IDEMPOTENCY_KEY_CONFLICT)
def _used_key(stage: Stage, call: Call) -> httpx.Response:
    """The key was used on another route, which is a conflict for those too that replay by their key alone."""
    key, asked = stage.name("key"), {"question": "Who?", "answer": "They."}
    stage.daemon.post(f"/v1/buckets/{stage.bucket()}/qa", 201, json=asked, repeat_key=key)
    return stage.send(call.naming(Idempotency_Key=key))


@spoils(E.REQUEST_IN_PROGRESS)
def _in_progress(stage: Stage, call: Call) -> httpx.Response:
    if call.is_to("/refresh"):
        with stage.resting():
            return stage.send(call.at(source_id=stage.queued_from_url()))
    if "session_id" not in call.places:
        key = stage.name("key")
        with stage.daemon.holding(key_lock(stage.key_id, key)):
            return stage.send(call.naming(Idempotency_Key=key))
    # Another request, which doesn't let go, works on the session.
    with patch.object(locks, "TAKEOVER_S", 0.2), stage.daemon.holding(locks.session_lock(call.places["session_id"])):
        return stage.send(call)


@spoils(E.AGENT_REPLAY_CHECK_UNAVAILABLE)
def _undecided(stage: Stage, call: Call) -> httpx.Response:
    key, agent_id = stage.name("key"), call.options["json"]["agent_id"]
    with stage.daemon.holding(*agent_lock(stage.key_id, key, agent_id)):
        return stage.send(call.naming(Idempotency_Key=key))


@spoils(E.BUCKET_NOT_FOUND)
def _no_bucket(stage: Stage, call: Call) -> httpx.Response:
    if "bucket" in call.places:
        return stage.send(call.at(bucket="nowhere"))
    name = "bucket" if call.is_to("/events") else "buckets"
    return stage.send(call.asking(**{name: "nowhere"}) if call.method == "GET" else call.sending(buckets=["nowhere"]))


@spoils(E.SOURCE_NOT_FOUND)
def _no_source(stage: Stage, call: Call) -> httpx.Response:
    if call.is_to("/finalize"):
        # The one to replace was there when the session was opened.
        bucket, source_id = stage.ready()
        places = stage.uploaded(bucket=bucket, replaces=source_id)
        stage.daemon.delete(f"/v1/sources/{source_id}")
        return stage.send(call.at(**places))
    if "source_id" in call.places:
        return stage.send(call.at(source_id="src_missing"))
    named = "source_id" if call.is_to("/sources") else "replaces"
    return stage.send(call.sending(**{named: "src_missing"}))


@spoils(E.CHECKSUM_MISMATCH)
def _other_hash(stage: Stage, call: Call) -> httpx.Response:
    if "session_id" not in call.places:
        return stage.send(call.sending(sha256="0" * 64))
    places = stage.session(sha256="0" * 64)[0]
    if call.is_to("/finalize"):
        # As after a kill between the last byte and its hash.
        store_unseen(stage.daemon, places["session_id"], NOTES)
    return stage.send(call.at(**places))


def filling(code: E, content: bytes) -> None:
    """Note a spoiler whose file has these bytes, wherever they come from."""

    def spoil(stage: Stage, call: Call) -> httpx.Response:
        if call.is_to("/files"):
            return stage.send(call.but(files={"file": ("a.md", content)}))
        if call.is_to(*SESSIONS):
            return stage.send(call.sending(size_bytes=len(content)))
        return _fetching(stage, call, content, "text/plain")

    SPOILERS[code] = spoil


filling(E.EMPTY_FILE, b"")
filling(E.FILE_TOO_LARGE, b"x" * (26_214_400 + 1))


def _fetching(
    stage: Stage, call: Call, body: bytes, content_type: str, status: int = 200, door: str = "", **headers: str
) -> httpx.Response:
    """The call about a URL whose host answers with this; a refresh, after it had answered well."""
    door = door or ("pages" if call.is_to(*PAGES) else "files/import")
    url = stage.page_url() if door == "pages" else stage.file_url()
    is_again = call.is_to("/refresh")
    call = call.at(source_id=stage.fetched(url, door)) if is_again else call.sending(url=url)
    stage.site.put("/" + url.rpartition("/")[2], body, content_type, status, **headers)
    return stage.send(call)


def fetching(code: E, body: bytes, content_type: str, status: int = 200, door: str = "", **headers: str) -> None:
    """Note a spoiler whose host answers with this."""
    SPOILERS[code] = lambda stage, call: _fetching(stage, call, body, content_type, status, door, **headers)


fetching(E.URL_FETCH_BLOCKED, b"", "text/plain", 302, location=BLOCKED)
fetching(E.WEBSITE_ANALYSIS_FAILED, b"", "text/plain", 500, door="pages")
fetching(E.URL_IS_WEB_PAGE, PAGE, "text/html")
fetching(E.URL_IS_FILE, PDF, "application/pdf", door="pages")


@spoils(E.URL_FETCH_FAILED)
def _fetch_failed(stage: Stage, call: Call) -> httpx.Response:
    if call.is_to(*PAGES):
        return stage.send(call.sending(webhook={"url": UNRESOLVED}))
    return _fetching(stage, call, b"", "text/plain", 500)


@spoils(E.WEBSITE_URL_EXISTS)
def _known_page(stage: Stage, call: Call) -> httpx.Response:
    assert stage.send(call).status_code == 201
    return stage.send(call)


@spoils(E.BUCKET_SLUG_EXISTS)
def _taken(stage: Stage, call: Call) -> httpx.Response:
    slug = stage.bucket()
    if call.method == "POST":
        return stage.send(call.sending(slug=slug))
    stage.daemon.patch(f"/v1/buckets/{slug}", status="archived")
    return stage.send(call.at(bucket=slug))


@spoils(E.DELETE_IN_PROGRESS)
def _deleting(stage: Stage, call: Call) -> httpx.Response:
    with stage.resting():
        stage.daemon.delete("/v1/buckets/{bucket}".format(**call.places), force="true")
        return stage.send(call)


@spoils(E.DELETE_BLOCKED)
def _in_use(stage: Stage, call: Call) -> httpx.Response:
    if "agent_id" in call.places:
        return stage.send(call.at(agent_id=stage.agent(bound_surface="widget")))
    stage.agent(policy={"source_ids": [call.places["source_id"]]})
    return stage.send(call)


@spoils(E.SESSION_EXPIRED)
def _expired(stage: Stage, call: Call) -> httpx.Response:
    places = stage.session()[0]
    stage.daemon.advance(2 * 3600)
    return stage.send(call.at(**places))


@spoils(E.SESSION_CANCELED)
def _canceled(stage: Stage, call: Call) -> httpx.Response:
    places = stage.session()[0]
    stage.daemon.delete("/v1/buckets/{bucket}/uploads/{session_id}".format(**places))
    return stage.send(call.at(**places))


@spoils(E.AGENT_LIMIT_REACHED)
def _too_many(stage: Stage, call: Call) -> httpx.Response:
    stage.agent()
    with stage.limited(agents=1):
        return stage.send(call)


@spoils(E.UPLOAD_RATE_LIMITED)
def _too_often(stage: Stage, call: Call) -> httpx.Response:
    with stage.limited(creates_per_second=1) as rate_limits:
        stage.daemon.loop.run(rate_limits.charge_create(stage.daemon.team_id, 0))
        return stage.send(call)


def _storing(stage: Stage, call: Call) -> Call:
    """The call, once it has something to store: a refresh has where its URL has changed."""
    if call.is_to("/refresh"):
        stage.change_at_its_url(call.places["source_id"])
    return call


@spoils(E.QUOTA_EXCEEDED)
def _used_bytes(stage: Stage, call: Call) -> httpx.Response:
    with stage.limited(bytes_per_minute=1):
        return stage.send(_storing(stage, call))


@spoils(E.STORAGE_FULL)
def _no_room(stage: Stage, call: Call) -> httpx.Response:
    with stage.daemon.refusing_bytes():
        return stage.send(_storing(stage, call))


@spoils(E.RAG_QUOTA_EXCEEDED)
def _used_up(stage: Stage, call: Call) -> httpx.Response:
    assert stage.send(call).is_success
    daemon = stage.daemon
    daemon.wait(
        lambda: all(used_answers(node.context, daemon.team_id) for node in daemon.nodes), "all nodes know of the answer"
    )
    with stage.limited(answers_per_month=1):
        return stage.send(call)


@spoils(E.METADATA_FILTER_TOO_LARGE)
def _too_many_sources(stage: Stage, call: Call) -> httpx.Response:
    if not is_openai_path(call.path):
        sources = [f"src_{number}" for number in range(201)]
        return stage.send(call.asking(source_ids=sources) if call.method == "GET" else call.sending(source_ids=sources))
    policy = {"scope": "sources", "source_ids": [stage.ready()[1] for _ in range(2)]}
    with stage.limited(search_sources=1):
        return stage.send(call.using(f"svc-agent:{stage.agent(policy=policy)}"))


def writing(code: E, answer: Callable[..., Any], **limits: float) -> None:
    """Note a spoiler whose model, which is to write the answer, does this."""

    def spoil(stage: Stage, call: Call) -> httpx.Response:
        with chatting(answer) as server, stage.daemon.writing(server.url("/v1"), **limits):
            return stage.send(call)

    SPOILERS[code] = spoil


writing(E.ANSWER_FAILED, streaming(b"", status=500))
writing(E.ANSWER_TIMEOUT, stalling(), first_word_s=0.5)


@spoils(E.SEARCH_DISABLED)
def _switched_off(stage: Stage, call: Call) -> httpx.Response:
    switch = Call("PUT", "/admin/search").naming(Authorization=f"Bearer {stage.daemon.operator_token}")
    assert stage.send(switch.sending(enabled=False)).is_success
    try:
        return stage.send(call)
    finally:
        assert stage.send(switch.sending(enabled=True)).is_success


@spoils(E.BUCKET_STORE_INDEXING_PENDING)
def _pending(stage: Stage, call: Call) -> httpx.Response:
    if call.is_to("/text"):
        with stage.resting():
            return stage.send(call.at(source_id=stage.daemon.add_source(bucket=stage.bucket())))
    empty = stage.bucket()
    return stage.send(call.asking(buckets=empty) if call.method == "GET" else call.sending(buckets=[empty]))


@spoils(E.SEARCH_TIMEOUT)
def _slow(stage: Stage, call: Call) -> httpx.Response:
    stage.daemon.provider.fail("search", SearchTimeout())
    return stage.send(call)


@contextmanager
def _failing(stage: Stage) -> Iterator[None]:
    """The index fails at whatever a request asks of it within the block."""
    failure = ProviderFailed("The index is away.", retryable=True)
    methods = ("search", "get_document", "get_text", "set_title", "count_unembedded")
    for method in methods:
        stage.daemon.provider.fail(method, failure, times=1000)
    yield
    for method in methods:
        stage.daemon.provider.fail(method, failure, times=0)


@spoils(E.SEARCH_FAILED)
def _index_away(stage: Stage, call: Call) -> httpx.Response:
    with _failing(stage):
        return stage.send(call)


@spoils(E.TEAM_STORE_MAINTENANCE)
def _in_maintenance(stage: Stage, call: Call) -> httpx.Response:
    """The rebuild is queued and hasn't begun: a call that needs the index is refused."""
    with stage.resting():
        task_id = begin(stage.daemon)
        try:
            with _failing(stage):
                return stage.send(call)
        finally:
            now = stage.daemon.context.clock.timestamp()
            stage.daemon.write(lambda connection: cancel_task(connection, task_id, now))
