"""For each error code how a call that works is spoiled so that it is refused with it, on whatever route.

A spoiler takes the stage and a call that would succeed, and returns what is answered to it once it is spoiled.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import httpx

from svc_daemon.api.forms import OVERHEAD_BYTES
from svc_daemon.core.access import api_keys
from svc_daemon.provider.errors import ProviderFailed, SearchTimeout
from svc_daemon.store.tasks import cancel_task
from svc_daemon.wire.codes import ErrorCode
from svc_daemon.wire.codes import ErrorCode as E
from tests.api.agent_refusals import AGENT_SPOILERS, Spoiler
from tests.api.daemons import NOTES
from tests.api.sites import PAGE, PDF
from tests.api.stages import Call, Stage
from tests.workers.rebuilds import begin

BLOCKED = "http://10.0.0.1/a.md"
UNRESOLVED = "http://nowhere.invalid/hook"
TOO_LARGE = b"x" * (26_214_400 + 1)
#: How the paths end of both doors for sessions, and for pages.
SESSIONS, PAGES = ("/uploads", "/upload-session"), ("/pages", "/websites")
SPOILERS: dict[ErrorCode, Spoiler] = {**AGENT_SPOILERS}


def spoils(code: ErrorCode) -> Callable[[Spoiler], Spoiler]:
    def note(spoiler: Spoiler) -> Spoiler:
        SPOILERS[code] = spoiler
        return spoiler

    return note


def is_to(call: Call, *ends: str) -> bool:
    return call.path.endswith(ends)


def changed(code: ErrorCode, change: Callable[[Call], Call]) -> None:
    """Note a spoiler that sends the call changed."""
    SPOILERS[code] = lambda stage, call: stage.send(change(call))


changed(E.HOST_NOT_ALLOWED, lambda call: call.naming(Host="elsewhere.example"))
changed(E.ORIGIN_NOT_ALLOWED, lambda call: call.naming(Origin="https://elsewhere.example"))
changed(E.HEADERS_TOO_LARGE, lambda call: call.naming(X_Long="x" * 17_000))
changed(E.METHOD_NOT_ALLOWED, lambda call: replace(call, method="TRACE"))
changed(E.NOT_FOUND, lambda call: replace(call, path=f"{call.path}/and/more"))
changed(E.INVALID_REQUEST, lambda call: call.asking(team_id="team_other"))
changed(E.INVALID_PROJECT_KEY, lambda call: call.but(key=""))
changed(E.INVALID_IDEMPOTENCY_KEY, lambda call: call.naming(Idempotency_Key="two words"))
changed(E.TASK_NOT_FOUND, lambda call: call.at(task_id="task_missing"))
changed(E.BATCH_NOT_FOUND, lambda call: call.at(batch_id="bat_missing"))
changed(E.SESSION_NOT_FOUND, lambda call: call.at(session_id="upl_missing"))
changed(E.TOO_MANY_TAGS, lambda call: call.sending(tags=_tags(call)))
changed(E.METADATA_TOO_LARGE, lambda call: call.sending(metadata=_metadata(call)))
changed(E.KEY_NOT_FOUND, lambda call: call.at(key_id="key_missing"))
changed(E.BUCKET_REQUIRED, lambda call: _going_to(call, ""))
changed(E.BUCKET_ASSIGNMENT_FAILED, lambda call: _going_to(call, "nowhere"))
changed(E.FORCE_REQUIRED, lambda call: call.but(params={}))
changed(E.OFFSET_MISMATCH, lambda call: call.but(content=b"x").naming(Content_Range=f"bytes 5-5/{len(NOTES)}"))
changed(E.SIZE_MISMATCH, lambda call: call.naming(Content_Range="bytes 0-8/9"))


def _tags(call: Call) -> str | list[str]:
    tags = [f"tag{n}" for n in range(21)]
    return ",".join(tags) if "files" in call.options else tags


def _metadata(call: Call) -> str | dict[str, str]:
    return f'{{"a": "{"x" * 8200}"}}' if "files" in call.options else {"a": "x" * 8200}


def _going_to(call: Call, bucket: str) -> Call:
    """The call of a legacy door with this bucket in its body; an empty one names none."""
    manifest = call.options["json"].get("manifest")
    return call.sending(manifest=manifest | {"bucket": bucket}) if manifest else call.sending(bucket=bucket)


@spoils(E.TEAM_STORE_MAINTENANCE)
def _in_maintenance(stage: Stage, call: Call) -> httpx.Response:
    """Queued, and nobody has begun: what needs the index and can't have it is told why."""
    with stage.resting():
        task_id = begin(stage.daemon)
        try:
            with _failing(stage):
                return stage.send(call)
        finally:
            now = stage.daemon.context.clock.timestamp()
            stage.daemon.write(lambda connection: cancel_task(connection, task_id, now))


@spoils(E.FORBIDDEN_PROJECT_KEY)
def _forbidden(stage: Stage, call: Call) -> httpx.Response:
    only = api_keys.AGENT_READ if "webhooks" in call.path else api_keys.WEBHOOK_MANAGE
    return stage.send(call.but(key=stage.daemon.add_key(only)))


def _bare(call: Call, content: bytes, content_type: str) -> Call:
    """The call with this body in place of its own."""
    options = {name: value for name, value in call.options.items() if name not in ("json", "files", "data")}
    return replace(call, options=options).but(content=content).naming(Content_Type=content_type)


changed(E.INVALID_JSON, lambda call: _bare(call, b"{", "application/json"))


@spoils(E.REQUEST_TOO_LARGE)
def _body_too_large(stage: Stage, call: Call) -> httpx.Response:
    if "files" in call.options:
        return _form_too_large(stage, call)
    return stage.send(_bare(call, b" " * (1024 * 1024 + 1), "application/json"))


def _form_too_large(stage: Stage, call: Call) -> httpx.Response:
    """With more behind the form than any form has, in chunks, so that no header tells."""
    form = httpx.Request(call.method, "http://localhost", files=call.options["files"])
    whole = form.read() + b"x" * (OVERHEAD_BYTES + 100)

    async def chunks() -> AsyncIterator[bytes]:
        yield whole

    with stage.limited(file_bytes=len(NOTES)):
        bare = _bare(call, b"", form.headers["Content-Type"])
        return stage.send(bare.but(content=chunks()))


@spoils(E.UNSUPPORTED_MEDIA_TYPE)
def _other_type(stage: Stage, call: Call) -> httpx.Response:
    if "content" in call.options:
        return stage.send(call.naming(Content_Encoding="gzip"))
    return stage.send(_bare(call, b"{}", "text/plain"))


@spoils(E.IDEMPOTENCY_KEY_CONFLICT)
def _used_key(stage: Stage, call: Call) -> httpx.Response:
    """The key was used on another route, which is a conflict for those too that replay by their key alone."""
    key = stage.name("key")
    bucket = stage.bucket()
    asked = {"question": "Who?", "answer": "They."}
    used = Call("POST", "/v1/buckets/{bucket}/qa", {"bucket": bucket}, {"json": asked}).naming(Idempotency_Key=key)
    assert stage.send(used).status_code == 201
    return stage.send(call.naming(Idempotency_Key=key))


@spoils(E.REQUEST_IN_PROGRESS)
def _in_progress(stage: Stage, call: Call) -> httpx.Response:
    if is_to(call, "/refresh"):
        with stage.resting():
            return stage.send(call.at(source_id=stage.queued_from_url()))
    if "session_id" in call.places:
        return _while_held(stage, call)
    key = stage.name("key")
    with stage.daemon.context.gates.hold_key(stage.key_id, key):
        return stage.send(call.naming(Idempotency_Key=key))


def _while_held(stage: Stage, call: Call) -> httpx.Response:
    """While another request, which doesn't let go, works on the session."""
    writers = stage.daemon.context.writers
    held = writers.hold(call.places["session_id"], lets_go=False)
    stage.daemon.loop.run(held.__aenter__())
    try:
        return stage.send(call)
    finally:
        stage.daemon.loop.run(held.__aexit__(None, None, None))


@spoils(E.BUCKET_NOT_FOUND)
def _no_bucket(stage: Stage, call: Call) -> httpx.Response:
    if "bucket" in call.places:
        return stage.send(call.at(bucket="nowhere"))
    if call.method == "GET":
        return stage.send(call.asking(buckets="nowhere"))
    return stage.send(call.sending(buckets=["nowhere"]))


@spoils(E.SOURCE_NOT_FOUND)
def _no_source(stage: Stage, call: Call) -> httpx.Response:
    if is_to(call, "/finalize"):
        return _no_source_to_replace(stage, call)
    if "source_id" in call.places:
        return stage.send(call.at(source_id="src_missing"))
    named = "source_id" if is_to(call, "/sources") else "replaces"
    return stage.send(call.sending(**{named: "src_missing"}))


def _no_source_to_replace(stage: Stage, call: Call) -> httpx.Response:
    """It was there when the session was opened."""
    bucket, source_id = stage.ready()
    places = stage.uploaded(bucket=bucket, replaces=source_id)
    assert stage.daemon.ask("DELETE", f"/v1/sources/{source_id}").is_success
    return stage.send(call.at(**places))


@spoils(E.CHECKSUM_MISMATCH)
def _other_hash(stage: Stage, call: Call) -> httpx.Response:
    if "session_id" in call.places:
        places = stage.session(sha256="0" * 64)[0]
        if is_to(call, "/finalize"):
            # As after a kill between the last byte and its hash.
            (stage.daemon.files.parts / places["session_id"]).write_bytes(NOTES)
        return stage.send(call.at(**places))
    return stage.send(call.sending(sha256="0" * 64))


@spoils(E.EMPTY_FILE)
def _empty(stage: Stage, call: Call) -> httpx.Response:
    if is_to(call, "/files"):
        return stage.send(call.but(files={"file": ("a.md", b"")}))
    if is_to(call, *SESSIONS):
        return stage.send(call.sending(size_bytes=0))
    return _fetching(stage, call, b"", "text/plain")


@spoils(E.FILE_TOO_LARGE)
def _large(stage: Stage, call: Call) -> httpx.Response:
    if is_to(call, "/files"):
        with stage.limited(file_bytes=8):
            return stage.send(call)
    if is_to(call, *SESSIONS):
        return stage.send(call.sending(size_bytes=len(TOO_LARGE)))
    return _fetching(stage, call, TOO_LARGE, "text/plain")


def _fetching(
    stage: Stage, call: Call, body: bytes, content_type: str, status: int = 200, door: str = "", **headers: str
) -> httpx.Response:
    """The call about a URL whose host answers with this; a refresh, after it had answered well."""
    door = door or ("pages" if is_to(call, *PAGES) else "files/import")
    url = stage.page_url() if door == "pages" else stage.file_url()
    is_again = is_to(call, "/refresh")
    call = call.at(source_id=stage.fetched(url, door)) if is_again else call.sending(url=url)
    stage.site.put("/" + url.rpartition("/")[2], body, content_type, status, **headers)
    return stage.send(call)


@spoils(E.URL_FETCH_BLOCKED)
def _blocked(stage: Stage, call: Call) -> httpx.Response:
    return _fetching(stage, call, b"", "text/plain", 302, location=BLOCKED)


@spoils(E.URL_FETCH_FAILED)
def _fetch_failed(stage: Stage, call: Call) -> httpx.Response:
    if is_to(call, *PAGES):
        return stage.send(call.sending(webhook={"url": UNRESOLVED}))
    return _fetching(stage, call, b"", "text/plain", 500)


@spoils(E.WEBSITE_ANALYSIS_FAILED)
def _page_failed(stage: Stage, call: Call) -> httpx.Response:
    return _fetching(stage, call, b"", "text/plain", 500, door="pages")


@spoils(E.URL_IS_WEB_PAGE)
def _is_page(stage: Stage, call: Call) -> httpx.Response:
    return _fetching(stage, call, PAGE, "text/html")


@spoils(E.URL_IS_FILE)
def _is_file(stage: Stage, call: Call) -> httpx.Response:
    return _fetching(stage, call, PDF, "application/pdf", door="pages")


@spoils(E.WEBSITE_URL_EXISTS)
def _known_page(stage: Stage, call: Call) -> httpx.Response:
    assert stage.send(call).status_code == 201
    return stage.send(call)


@spoils(E.BUCKET_SLUG_EXISTS)
def _taken(stage: Stage, call: Call) -> httpx.Response:
    slug = stage.bucket()
    if call.method == "POST":
        return stage.send(call.sending(slug=slug))
    assert stage.daemon.ask("PATCH", f"/v1/buckets/{slug}", json={"status": "archived"}).is_success
    return stage.send(call.at(bucket=slug))


@spoils(E.DELETE_IN_PROGRESS)
def _deleting(stage: Stage, call: Call) -> httpx.Response:
    with stage.resting():
        gone = stage.daemon.ask("DELETE", "/v1/buckets/{bucket}".format(**call.places), params={"force": "true"})
        assert gone.is_success
        return stage.send(call)


@spoils(E.SESSION_EXPIRED)
def _expired(stage: Stage, call: Call) -> httpx.Response:
    places = stage.session()[0]
    stage.daemon.advance(2 * 3600)
    return stage.send(call.at(**places))


@spoils(E.SESSION_CANCELED)
def _canceled(stage: Stage, call: Call) -> httpx.Response:
    places = stage.session()[0]
    assert stage.daemon.ask("DELETE", "/v1/buckets/{bucket}/uploads/{session_id}".format(**places)).is_success
    return stage.send(call.at(**places))


@spoils(E.BLOB_NOT_UPLOADED)
def _not_uploaded(stage: Stage, call: Call) -> httpx.Response:
    return stage.send(call.at(**stage.session()[0]))


@spoils(E.UPLOAD_RATE_LIMITED)
def _too_often(stage: Stage, call: Call) -> httpx.Response:
    with stage.limited(creates_per_second=1) as gates:
        gates.take_create(stage.daemon.team_id)
        return stage.send(call)


@spoils(E.QUOTA_EXCEEDED)
def _too_much(stage: Stage, call: Call) -> httpx.Response:
    with stage.limited(bytes_per_minute=1):
        return _storing(stage, call)


@spoils(E.STORAGE_FULL)
def _disk_full(stage: Stage, call: Call) -> httpx.Response:
    with stage.limited(free_disk_bytes=10**15):
        return _storing(stage, call)


def _storing(stage: Stage, call: Call) -> httpx.Response:
    """A refresh stores something only where its URL has changed."""
    if is_to(call, "/refresh"):
        url = stage.daemon.source(call.places["source_id"])["source_url"]
        stage.site.put("/" + url.rpartition("/")[2], NOTES + b"And more.\n", "text/markdown")
    return stage.send(call)


@spoils(E.BUCKET_STORE_INDEXING_PENDING)
def _pending(stage: Stage, call: Call) -> httpx.Response:
    if is_to(call, "/text"):
        with stage.resting():
            return stage.send(call.at(source_id=stage.daemon.add_source(bucket=stage.bucket())))
    empty = stage.bucket()
    return stage.send(call.asking(buckets=empty) if call.method == "GET" else call.sending(buckets=[empty]))


@spoils(E.SEARCH_TIMEOUT)
def _slow(stage: Stage, call: Call) -> httpx.Response:
    stage.daemon.provider.fail("search", SearchTimeout())
    return stage.send(call)


@spoils(E.SEARCH_FAILED)
def _index_away(stage: Stage, call: Call) -> httpx.Response:
    with _failing(stage):
        return stage.send(call)


@contextmanager
def _failing(stage: Stage) -> Iterator[None]:
    """The index fails at whatever a request asks of it within the block."""
    methods = ("search", "get_document", "get_text", "set_title")
    for method in methods:
        stage.daemon.provider.fail(method, ProviderFailed("The index is away.", retryable=True), times=1000)
    yield
    for method in methods:
        stage.daemon.provider.fail(method, ProviderFailed("The index is away.", retryable=True), times=0)
