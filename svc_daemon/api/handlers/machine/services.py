"""HTTP handlers that describe the service: health, version, limits and the OpenAPI document."""

import asyncio
from dataclasses import fields

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from svc_daemon.api.endpoints import Endpoint
from svc_daemon.api.requests import caller, context_of, query_flag, query_text
from svc_daemon.api.responses import respond
from svc_daemon.core.json_bodies import refusal
from svc_daemon.core.problems import lost_files
from svc_daemon.core.text.document_formats import FORMATS, OCR
from svc_daemon.errors import StoreUnavailable
from svc_daemon.operations.keys import view_key
from svc_daemon.operations.shared.response_objects import view_engines, view_shortage
from svc_daemon.operations.shared.usage import used_answers
from svc_daemon.process.embedders import EmbedderInUse
from svc_daemon.settings.limits import Limits
from svc_daemon.store.rows.agents import count_named_agents
from svc_daemon.store.rows.tasks import count_open
from svc_daemon.wire import services as wire
from svc_daemon.wire.light.local_daemons import NONCE_CHARACTERS, prove
from svc_daemon.wire.light.versions import API_NEWEST, API_OLDEST, API_RANGE, VERSION


async def health(request: Request) -> Response:
    """Report that the process runs. With `ready=true`, fail if the process can't handle requests."""
    context, state = context_of(request), request.app.state
    must_serve, aside = query_flag(request, "ready"), context.set_aside_files.counts
    open_tasks = None
    try:
        open_tasks = context.read(count_open)
    except StoreUnavailable as error:
        if must_serve:
            known = context.engines.now.get(error.details.get("engine", ""))
            raise StoreUnavailable(known.message or error.message, known.name) if known else error from error
    nonce, proof = query_text(request, "nonce"), None
    if nonce is not None:
        if len(nonce) not in NONCE_CHARACTERS:
            raise refusal("nonce", f"must have {NONCE_CHARACTERS[0]} to {NONCE_CHARACTERS[-1]} characters.")
        proof = prove(context.secret, state.installation_id, request.scope["server"][1], nonce)
    body = {
        "status": "read_only" if context.database.is_broken else "ok" if open_tasks else "unavailable",
        "installation_id": state.installation_id,
        "version": VERSION,
        "api": API_RANGE,
        "uptime_seconds": round(context.clock.monotonic() - state.started_s, 3),
        "writer": {"operations": context.database.operations, "commits": context.database.commits},
        "queue": open_tasks,
        "embedding": view_embedding(context.embedding),
        "set_aside": {"files": aside.files, "known": aside.known, "message": lost_files(aside.files, aside.known)},
        "shortage": view_shortage(context.shortages.now),
        "engines": view_engines(context),
        "faults": state.faults,
        "proof": proof,
    }
    return respond(request, body)


def view_embedding(embedding: EmbedderInUse) -> wire.Embedding:
    """Convert the state of the embedding model to its API form."""
    model = embedding.embedder.model if embedding.embedder else None
    return wire.Embedding(state=embedding.state.value, model=model, message=embedding.message)


async def version(request: Request) -> Response:
    caller(request)
    verify = query_text(request, "verify")
    if verify not in (None, "writing"):
        raise refusal("verify", "must be writing.")
    llm, writing = context_of(request).llm, None
    if verify is not None and llm is None:
        writing = wire.Writing(state="off", model=None, message=None)
    elif verify is not None and llm is not None:
        message = await llm.look()
        writing = wire.Writing(state="failing" if message else "ready", model=llm.model, message=message)
    body = {"object": "version", "version": VERSION, "api_oldest": API_OLDEST, "api_newest": API_NEWEST}
    return respond(request, body, writing=writing)


async def limits(request: Request) -> Response:
    key = caller(request)
    context = context_of(request)
    shown = {
        limit.name: wire.Limit(value=getattr(context.limits, limit.name), unit=limit.metadata["unit"], used=None)
        for limit in fields(Limits)
    }
    shown["bytes_per_minute"]["used"] = await context.rate_limits.used_bytes(key.team_id)
    shown["answers_per_month"]["used"] = used_answers(context, key.team_id)
    shown["agents"]["used"] = context.look(lambda connection: count_named_agents(connection, key.team_id))
    extractor = request.app.state.extractor
    ocr = wire.Recognition(
        state="ready" if extractor.recognizes else "off",
        message=extractor.unrecognized or None,
        page_seconds=context.scan_pace.page_s,
    )
    formats = [
        wire.ReadFormat(
            name=kind.name,
            extensions=[f".{extension}" for extension in kind.types],
            content_types=sorted(set(kind.types.values())),
            extra=kind.extra,
        )
        for kind in FORMATS
        if kind.extra != OCR or extractor.recognizes
    ]
    body = {"object": "limits", "team_id": key.team_id, "key": view_key(key), "limits": shown, "formats": formats}
    return respond(request, body, ocr=ocr)


async def openapi(request: Request) -> Response:
    return JSONResponse(await asyncio.to_thread(request.app.state.openapi))


# fmt: off
ENDPOINTS = (
    Endpoint("GET", "/healthz", health, "Check that the service is alive", {200: wire.Health}, keyed=False,
             query={"nonce": "16 to 128 characters that `proof` answers under the installation's secret.",
                    "ready": "true: 503 while the database does not answer, for load balancers."}),
    Endpoint("GET", "/openapi.json", openapi, "This document", {200: None}, keyed=False),
    Endpoint("GET", "/v1/version", version, "Release and API versions", {200: wire.Version},
             query={"verify": "`writing`: ask the server of the model that writes the answers if it is there."}),
    Endpoint("GET", "/v1/limits", limits, "Every limit, and the formats read", {200: wire.LimitsAnswer}),
)
# fmt: on
