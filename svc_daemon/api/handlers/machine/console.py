"""HTTP handlers for the console in the browser: its static files, and the code that it exchanges for a key.

The files have no secrets and any page may link to them, so they need no key and are exempt from the check of origins.
"""

import hashlib
from functools import cache
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from svc_daemon.api.endpoints import Endpoint
from svc_daemon.api.middleware.response_headers import CONSOLE_PREFIX
from svc_daemon.api.requests import body_of, caller, context_of
from svc_daemon.api.responses import respond
from svc_daemon.errors import NotFound
from svc_daemon.operations import keys as verbs
from svc_daemon.wire import keys as wire
from svc_daemon.wire.light.error_codes import ErrorCode as E

_TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
#: What the pages may do: load these files, call this service, and nothing else. No text can become markup or a script.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    # A new release takes effect with the next load.
    "Cache-Control": "no-cache",
}


@cache
def read_files() -> dict[str, bytes]:
    """Return the console's files by name."""
    folder = files("svc_daemon") / "console"
    return {each.name: each.read_bytes() for each in folder.iterdir() if each.name.rpartition(".")[2] in _TYPES}


async def show_file(request: Request) -> Response:
    name = request.path_params.get("name", "index.html")
    content = read_files().get(name)
    if content is None:
        raise NotFound(E.NOT_FOUND)
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    media_type, shown = _TYPES[name.rpartition(".")[2]], _HEADERS | {"ETag": tag}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=shown)
    return Response(content, media_type=media_type, headers=shown)


async def redirect(request: Request) -> Response:  # noqa: ARG001 - as a handler has it
    return RedirectResponse(CONSOLE_PREFIX, 308, headers=_HEADERS)


async def start(request: Request) -> Response:
    key = caller(request)
    _require_console(request)
    minted = await verbs.start_console(context_of(request), key)
    body = {"object": "console_session", "code": minted.text, "expires_at": minted.key.expires_at}
    response = respond(request, body, 201)
    response.headers["Cache-Control"] = "no-store"
    return response


async def exchange(request: Request) -> Response:
    _require_console(request)
    body = await body_of(request, wire.ConsoleExchange)
    response = respond(request, verbs.view_new_key(await verbs.exchange_code(context_of(request), body.code)), 201)
    response.headers["Cache-Control"] = "no-store"
    return response


def _require_console(request: Request) -> None:
    if not request.app.state.has_console:
        raise NotFound(E.NOT_FOUND, "The console of this service is off (SVC_CONSOLE).")


#: The routes of the files, which are no part of the API.
ROUTES = (
    Route(CONSOLE_PREFIX, show_file, methods=["GET"]),
    Route(CONSOLE_PREFIX + "{name}", show_file, methods=["GET"]),
    Route(CONSOLE_PREFIX.rstrip("/"), redirect, methods=["GET"]),
)

# fmt: off
ENDPOINTS = (
    Endpoint("POST", "/v1/console/sessions", start, "Create a code for the console, for one use within 60 s",
             {201: wire.ConsoleSession}, errors=(E.NOT_FOUND,)),
    Endpoint("POST", "/v1/console/sessions/exchange", exchange, "Exchange the code for a key of 12 hours",
             {201: wire.KeyCreated}, body=wire.ConsoleExchange, keyed=False,
             errors=(E.INVALID_PROJECT_KEY, E.NOT_FOUND)),
)
# fmt: on
