"""The routes of the service, and the application that serves them.

Each line has the methods, the paths and the module in `handlers`.

    GET                    /healthz, /openapi.json                         services
    GET                    /metrics                                        metrics
    GET                    /v1/version, /v1/limits                         services
    GET                    /v1/status, /v1/watchers                        status
    PUT                    /v1/watchers/{watcher_id}                       status
    GET POST               /v1/buckets                                     buckets
    GET PUT PATCH DELETE   /v1/buckets/{bucket}                            buckets
    POST                   /v1/buckets/{bucket}/files                      files
    POST                   /v1/buckets/{bucket}/files/import               imports
    POST                   /v1/buckets/{bucket}/pages                      imports
    POST                   /v1/buckets/{bucket}/qa                         qa
    POST                   /v1/buckets/{bucket}/uploads                    sessions
    GET DELETE             /v1/buckets/{bucket}/uploads/{session_id}       sessions
    POST                   /v1/buckets/{bucket}/uploads/{session_id}/finalize  sessions
    PUT OPTIONS            /v1/storage/{session_id}/{token}                sessions
    POST                   /v1/buckets/{bucket}/batches                    batches
    POST                   /v1/buckets/{bucket}/batches/{batch_id}/finalize  batches
    GET                    /v1/knowledge/batches/{batch_id}                batches
    GET                    /v1/buckets/{bucket}/sources, /v1/sources       listings
    POST                   /v1/buckets/{bucket}/retry                      listings
    POST                   /v1/buckets/{bucket}/sources                    sources
    DELETE                 /v1/buckets/{bucket}/sources/{source_id}        sources
    GET POST               /v1/buckets/{bucket}/vectors                    vectors
    GET PATCH DELETE       /v1/sources/{source_id}                         sources
    POST                   /v1/sources/{source_id}/retry, /v1/sources/{source_id}/refresh  sources
    GET                    /v1/sources/{source_id}/content, /v1/sources/{source_id}/text   sources
    GET                    /v1/knowledge/tasks/{task_id}                   sources
    GET                    /v1/webhooks/deliveries, /v1/webhooks/secret    webhooks
    POST                   /v1/webhooks/deliveries/{delivery_id}/resend    webhooks
    POST                   /v1/webhooks/secret/rotate                      webhooks
    GET POST               /v1/keys                                        keys
    DELETE                 /v1/keys/{key_id}                               keys
    POST                   /v1/console/sessions, /v1/console/sessions/exchange  console
    GET POST               /v1/agents                                      agents
    GET PUT DELETE         /v1/agents/{agent_id}                           agents
    GET                    /v1/models, /v1/models/{model}, /v1/rag-agent/models  models
    GET POST               /v1/search                                      searches
    GET                    /v1/events                                      events
    POST                   /v1/responses                                   responses
    POST                   /v1/chat/completions                           completions
    POST                   /v1/citations/verify                            citations

Aliases kept for old clients:

    GET                    /v1/knowledge/buckets                           buckets
    GET                    /v1/knowledge/files/{source_id}                 sources
    POST                   /v1/knowledge/files/upload-session              legacy
    POST                   /v1/knowledge/files:batch/upload-session        legacy
    POST                   /v1/knowledge/websites                          legacy

Outside the public API: `/console/…` for browsers (`console`), `/admin/…` for the operator (`admin_routes`), and
`POST /mcp` (`mcp`).
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import cache, partial
from pathlib import Path

from starlette.applications import Starlette
from starlette.routing import Route

from svc_daemon.api import admin_routes, mcp
from svc_daemon.api.endpoints import Endpoint, serving
from svc_daemon.api.fault_lab import FaultLab
from svc_daemon.api.handlers import (
    agents,
    batches,
    buckets,
    events,
    files,
    imports,
    keys,
    legacy,
    listings,
    qa,
    searches,
    sessions,
    sources,
    vectors,
    webhooks,
)
from svc_daemon.api.handlers.machine import console, metrics, services, status
from svc_daemon.api.handlers.openai import citations, completions, models, responses
from svc_daemon.api.middleware.hardening import EXCEPTION_HANDLERS, Hardening, middleware
from svc_daemon.api.openapi import describe
from svc_daemon.settings.limits import Limits

Lifespan = Callable[[Starlette], AbstractAsyncContextManager[None]]

ENDPOINTS: tuple[Endpoint, ...] = (
    *services.ENDPOINTS,
    *metrics.ENDPOINTS,
    *buckets.ENDPOINTS,
    *files.ENDPOINTS,
    *imports.ENDPOINTS,
    *qa.ENDPOINTS,
    *sessions.ENDPOINTS,
    *batches.ENDPOINTS,
    *legacy.ENDPOINTS,
    *status.ENDPOINTS,
    *listings.ENDPOINTS,
    *sources.ENDPOINTS,
    *vectors.ENDPOINTS,
    *events.ENDPOINTS,
    *webhooks.ENDPOINTS,
    *keys.ENDPOINTS,
    *console.ENDPOINTS,
    *agents.ENDPOINTS,
    *models.ENDPOINTS,
    *searches.ENDPOINTS,
    *responses.ENDPOINTS,
    *completions.ENDPOINTS,
    *citations.ENDPOINTS,
)


def create_app(
    hardening: Hardening, limits: Limits, lifespan: Lifespan, faults: Path | None = None, *, has_console: bool = True
) -> Starlette:
    """Create the application. `faults` is the file with the rules of the fault lab.

    `lifespan` must set the state attributes `context`, `extractor`, `installation_id`, `operator_token`, `started_s`
    and `measure`. Raises FaultsRefused if the rules are invalid, or OSError if the file can't be read.
    """
    lab = FaultLab(faults, ENDPOINTS) if faults is not None else None
    handlers = [(row, serving(row)) for row in ENDPOINTS]
    if lab is not None:
        handlers = [(row, lab.disturbing(row, handler)) for row, handler in handlers]
    app = Starlette(
        routes=[
            *(Route(row.path, handler, methods=[row.method]) for row, handler in handlers),
            *(console.ROUTES if has_console else ()),
            *admin_routes.ROUTES,
            mcp.route(),
        ],
        middleware=middleware(hardening, {row.path: row.successor for row in ENDPOINTS if row.successor}),
        exception_handlers=EXCEPTION_HANDLERS,
        lifespan=lifespan,
    )
    # A path with a trailing slash gets a 404 error in JSON. Starlette would redirect it, in a response without a body.
    app.router.redirect_slashes = False
    # Build the OpenAPI document on the first request for it, since this takes 0.2 s.
    app.state.openapi = cache(partial(describe, ENDPOINTS, limits))
    app.state.has_console = has_console
    #: Whether the fault lab, which makes requests fail on purpose, is on.
    app.state.faults = lab is not None
    #: Set when shutdown begins, so that waiting MCP tools return early.
    app.state.stopping = asyncio.Event()
    return app
