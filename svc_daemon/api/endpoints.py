"""The API's endpoints as a table: `app` serves them, and `openapi` documents them.

An endpoint with `dry_run` in its `query` supports dry runs. Other endpoints with side effects refuse dry runs.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from types import UnionType

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from svc_daemon.api.bodies import read_bytes
from svc_daemon.api.requests import DRY_RUN, caller, context_of, is_dry_run
from svc_daemon.core.json_bodies import parse_object, refusal
from svc_daemon.errors import ServiceError
from svc_daemon.wire.light import headers
from svc_daemon.wire.light.error_codes import ErrorCode
from svc_daemon.wire.light.error_codes import ErrorCode as E

Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An endpoint: one HTTP method on one path."""

    method: str
    #: Template of the path, with parameters in braces.
    path: str
    handler: Handler
    #: A description of one line, for the OpenAPI document.
    summary: str
    #: Maps each success status to the type of the response body; None for raw bytes or no body.
    answers: Mapping[int, type | UnionType | None]
    _: KW_ONLY
    #: Model of the JSON body; None if the endpoint has no JSON body.
    body: type[BaseModel] | None = None
    #: Whether the endpoint has no side effects, even if the method is POST.
    reads: bool = False
    #: Whether the endpoint sends an event stream if the body asks for one.
    streams: bool = False
    #: Whether a missing body is treated as an empty object.
    optional: bool = False
    #: Fields of a multipart form with a file, and their descriptions; empty without a form.
    form: Mapping[str, str] = field(default_factory=dict)
    #: Whether the request body may be any bytes.
    raw: bool = False
    #: Request headers of this endpoint only, and their descriptions.
    headers: Mapping[str, str] = field(default_factory=dict)
    #: Query parameters and their descriptions.
    query: Mapping[str, str] = field(default_factory=dict)
    #: Whether parameters that are not in `query` are refused, because one that is misspelled would narrow nothing.
    strict: bool = False
    #: Error codes besides those that any request may get.
    errors: tuple[ErrorCode, ...] = ()
    #: Whether the endpoint accepts the header `Idempotency-Key`.
    repeatable: bool = False
    #: The path of the current route if this endpoint is an alias (an old route), otherwise None.
    successor: str | None = None
    #: Whether the endpoint requires an API key.
    keyed: bool = True


# Query parameters and error codes that several endpoints share.

DRY = {DRY_RUN: "true: only validate."}
#: For requests that have the same effect however often they are sent.
KEY_IGNORED = {headers.IDEMPOTENCY_KEY: "Checked, but not needed: a repeated request changes nothing."}
PAGE = {
    "limit": "Rows of a page, 1 to {page_rows}; everything by default.",
    "after": "The last id of the previous page.",
}

BUCKET = "/v1/buckets/{bucket}"
NO_BUCKET, NO_SOURCE = (E.BUCKET_NOT_FOUND,), (E.SOURCE_NOT_FOUND,)
FIELDS = (E.METADATA_TOO_LARGE, E.TOO_MANY_TAGS)
QUOTAS = (E.UPLOAD_RATE_LIMITED, E.QUOTA_EXCEEDED, E.STORAGE_FULL)
SIZES = (E.EMPTY_FILE, E.FILE_TOO_LARGE)
BYTES = (*SIZES, E.CHECKSUM_MISMATCH)
WEB = (*NO_SOURCE, *FIELDS, *QUOTAS, E.URL_FETCH_BLOCKED, E.URL_FETCH_FAILED)
#: Errors of page imports. A page without content gives `website_analysis_failed`, not `empty_file`.
PAGED = (E.FILE_TOO_LARGE, E.CHECKSUM_MISMATCH, E.URL_IS_FILE, E.WEBSITE_URL_EXISTS, E.WEBSITE_ANALYSIS_FAILED)
INDEX = (E.SEARCH_FAILED, E.TEAM_STORE_MAINTENANCE)
SEARCH = (
    E.MODEL_NOT_ALLOWED,
    E.BUCKET_STORE_INDEXING_PENDING,
    E.RAG_QUOTA_EXCEEDED,
    E.SEARCH_DISABLED,
    E.SEARCH_TIMEOUT,
    *INDEX,
    *NO_BUCKET,
    E.MODEL_NOT_FOUND,
    E.AGENT_NOT_FOUND,
    E.METADATA_FILTER_TOO_LARGE,
)
ANSWER = (*SEARCH, E.ANSWER_FAILED, E.ANSWER_TIMEOUT)


def serving(row: Endpoint) -> Handler:
    """Return the endpoint's handler.

    If the endpoint is strict, unknown parameters are refused. If it has side effects but no dry run, dry runs are.
    """
    if row.strict:

        async def check(request: Request) -> Response:
            caller(request)
            for name in request.query_params:
                if name not in row.query:
                    raise refusal(
                        name, f"is no parameter of this request, which takes {', '.join(row.query) or 'none'}."
                    )
            return await row.handler(request)

        return check
    if row.method in ("GET", "OPTIONS") or row.reads or DRY_RUN in row.query:
        return row.handler

    async def handle(request: Request) -> Response:
        refuse_dry_run_in_query(request)
        # A body model accepts or refuses `dry_run` itself.
        if row.body is None and not row.raw:
            caller(request)
            await refuse_dry_run_in_body(request)
        return await row.handler(request)

    return handle


def refuse_dry_run_in_query(request: Request) -> None:
    """Raise `invalid_request` if the query string asks for a dry run."""
    if is_dry_run(request):
        raise refusal(DRY_RUN, "This request has no dry run.")


async def refuse_dry_run_in_body(request: Request) -> None:
    """Raise `invalid_request` if the body asks for a dry run; ignore the rest of the body."""
    data = await read_bytes(request, max_bytes=context_of(request).limits.json_bytes)
    if DRY_RUN.encode() not in data:
        return
    try:
        asked = parse_object(data).get(DRY_RUN)
    except ServiceError:
        asked = True
    if asked not in (None, False):
        raise refusal(DRY_RUN, "This request has no dry run.")
