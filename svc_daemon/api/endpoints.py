"""A route as data: what `app` serves and what `openapi` describes are made from the same rows.

A row whose `query` has `dry_run` returns what it would do instead of doing it. Every other row with effects refuses a
dry run: work that was done although only a dry run was asked for can't be taken back.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from types import UnionType

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from svc_daemon.api.bodies import read_bytes
from svc_daemon.api.presenting import DRY_RUN, caller, context_of, is_dry_run
from svc_daemon.core.requests import parse_object, refusal
from svc_daemon.errors import ServiceError
from svc_daemon.wire.codes import ErrorCode
from svc_daemon.wire.codes import ErrorCode as E

Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One method on one path."""

    method: str
    #: With parameters in braces.
    path: str
    handler: Handler
    #: One line for the API's document.
    summary: str
    #: Success statuses and the model of their bodies, or several joined by `|`; None is bytes.
    answers: Mapping[int, type[BaseModel] | UnionType | None]
    _: KW_ONLY
    #: Model of the JSON body; None where there is none.
    body: type[BaseModel] | None = None
    #: Whether it changes nothing, whatever its method.
    reads: bool = False
    #: Answers with events instead, where the body asks for a stream.
    streams: bool = False
    #: A request without a body counts as an empty object.
    optional: bool = False
    #: A multipart form with a file instead.
    form: Mapping[str, str] = field(default_factory=dict)
    #: Bytes instead, of any type.
    raw: bool = False
    #: Headers that it reads, besides those of all, and what each means.
    headers: Mapping[str, str] = field(default_factory=dict)
    #: Query parameters and what each means.
    query: Mapping[str, str] = field(default_factory=dict)
    #: What it refuses besides the common refusals.
    errors: tuple[ErrorCode, ...] = ()
    #: Takes `Idempotency-Key`.
    repeatable: bool = False
    #: The path that replaces it, if it is an alias for old clients.
    successor: str | None = None
    #: Needs an API key.
    keyed: bool = True
    #: The name for `url_for`, if a response contains this address.
    name: str | None = None


# What the rows of several nouns share: parameters and their meaning, and errors.

DRY = {DRY_RUN: "true: only validate."}
PAGE = {
    "limit": "Rows of a page, 1 to {page_rows}; without it, everything.",
    "after": "The last id of the page before.",
}

BUCKET = "/v1/buckets/{bucket}"
NO_BUCKET, NO_SOURCE = (E.BUCKET_NOT_FOUND,), (E.SOURCE_NOT_FOUND,)
FIELDS = (E.METADATA_TOO_LARGE, E.TOO_MANY_TAGS)
GATES = (E.UPLOAD_RATE_LIMITED, E.QUOTA_EXCEEDED, E.STORAGE_FULL)
SIZES = (E.EMPTY_FILE, E.FILE_TOO_LARGE)
BYTES = (*SIZES, E.CHECKSUM_MISMATCH)
WEB = (*NO_SOURCE, *FIELDS, *GATES, E.URL_FETCH_BLOCKED, E.URL_FETCH_FAILED)
#: A page without bytes is one that can't be analysed.
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
    """The row's handler; it refuses a dry run first where the row has effects and no dry run."""
    if row.method in ("GET", "OPTIONS") or row.reads or DRY_RUN in row.query:
        return row.handler

    async def handle(request: Request) -> Response:
        refuse_dry_run_in_query(request)
        # The model of a body decides by itself whether it has the field.
        if row.body is None and not row.raw:
            caller(request)
            await refuse_dry_run_in_body(request)
        return await row.handler(request)

    return handle


def refuse_dry_run_in_query(request: Request) -> None:
    """Raises `invalid_request` where the query string asks for a dry run."""
    if is_dry_run(request):
        raise refusal(DRY_RUN, "There is no dry run of this.")


async def refuse_dry_run_in_body(request: Request) -> None:
    """Raises `invalid_request` where a body that is not read otherwise asks for one; it may have any form."""
    data = await read_bytes(request, max_bytes=context_of(request).limits.json_bytes)
    if DRY_RUN.encode() not in data:
        return
    try:
        asked = parse_object(data).get(DRY_RUN)
    except ServiceError:
        asked = True
    if asked not in (None, False):
        raise refusal(DRY_RUN, "There is no dry run of this.")
