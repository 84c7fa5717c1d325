"""The errors of the service, with the HTTP status, retryability and default message of each code.

ServiceError            an error that is reported to the caller, with its code
 ├─ NotFound            `get_…` found no row that the caller may see
 └─ StorageError        the disk is full, or there was an I/O error
     ├─ CommitUnknown   a commit failed, but may have taken effect
     ├─ StoreUnavailable    an engine of the cluster does not answer
     │   └─ WrongEngine     an engine is not the one that the installation uses
     └─ ShuttingDown    the databases are already closed
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from svc_daemon.wire.light.error_codes import ErrorCode, SourceErrorCode
from svc_daemon.wire.light.error_codes import ErrorCode as E
from svc_daemon.wire.light.errors import shorten, shorten_all

if TYPE_CHECKING:
    from svc_daemon.wire.sources import SourceError


@dataclass(frozen=True, slots=True)
class ErrorRule:
    """The HTTP status of a code, whether a retry may help, and its default message."""

    status: int
    retryable: bool
    sentence: str


#: All error codes of the API.
ERRORS: dict[ErrorCode, ErrorRule] = {
    E.INVALID_PROJECT_KEY: ErrorRule(401, False, "The API key is missing, malformed or inactive."),
    E.FORBIDDEN_PROJECT_KEY: ErrorRule(403, False, "The API key lacks a capability."),
    E.BUCKET_REQUIRED: ErrorRule(400, False, "The request names no bucket."),
    E.BUCKET_NOT_FOUND: ErrorRule(404, False, "The bucket does not exist or is archived."),
    E.BUCKET_ASSIGNMENT_FAILED: ErrorRule(400, False, "A named bucket could not be resolved or assigned."),
    E.BUCKET_SLUG_EXISTS: ErrorRule(409, False, "A bucket with this slug exists."),
    E.EMPTY_FILE: ErrorRule(400, False, "The file has no bytes."),
    E.FILE_TOO_LARGE: ErrorRule(413, False, "The file is larger than the limit."),
    E.URL_IS_WEB_PAGE: ErrorRule(422, False, "The URL is a web page, not a file."),
    E.URL_IS_FILE: ErrorRule(422, False, "The URL is a file, not a web page."),
    E.URL_FETCH_BLOCKED: ErrorRule(400, False, "The fetch policy refuses this URL."),
    E.URL_FETCH_FAILED: ErrorRule(502, True, "The remote host did not serve the file."),
    E.WEBSITE_URL_EXISTS: ErrorRule(409, False, "The team has a source for this page already."),
    E.WEBSITE_ANALYSIS_FAILED: ErrorRule(502, True, "The page could not be fetched or read."),
    E.IDEMPOTENCY_KEY_CONFLICT: ErrorRule(409, False, "The idempotency key was used with a different request."),
    E.INVALID_IDEMPOTENCY_KEY: ErrorRule(400, False, "The idempotency key must be 1 to 255 visible ASCII characters."),
    E.REQUEST_IN_PROGRESS: ErrorRule(409, True, "The same request is still running."),
    E.TEAM_STORE_MAINTENANCE: ErrorRule(409, True, "The team's search index is being rebuilt."),
    E.BUCKET_STORE_INDEXING_PENDING: ErrorRule(409, True, "The bucket has no indexed content yet."),
    E.MODEL_NOT_FOUND: ErrorRule(404, False, "The model id is not an agent id."),
    E.AGENT_NOT_FOUND: ErrorRule(404, False, "There is no such agent."),
    E.SEARCH_TIMEOUT: ErrorRule(504, True, "The search took longer than its budget."),
    E.SEARCH_FAILED: ErrorRule(502, True, "The search provider failed."),
    E.SEARCH_DISABLED: ErrorRule(503, True, "Search is disabled for the moment."),
    E.ANSWER_FAILED: ErrorRule(502, True, "The model that writes the answers failed."),
    E.ANSWER_TIMEOUT: ErrorRule(504, True, "The model that writes the answers took too long."),
    E.DELETE_BLOCKED: ErrorRule(409, False, "Other things depend on this one."),
    E.FORCE_REQUIRED: ErrorRule(400, False, "Deleting a bucket needs force=true."),
    E.DELETE_IN_PROGRESS: ErrorRule(409, True, "The bucket is being deleted already."),
    E.METADATA_FILTER_TOO_LARGE: ErrorRule(400, False, "The search names too many sources."),
    E.RAG_QUOTA_EXCEEDED: ErrorRule(429, False, "The team has used its answers for this month."),
    E.AGENT_LIMIT_REACHED: ErrorRule(402, False, "The team has as many agents as its plan allows."),
    E.NO_UPDATES: ErrorRule(400, False, "The update names no field."),
    E.INVALID_AGENT_PROFILE: ErrorRule(400, False, "The agent's profile is not valid."),
    E.AGENT_REPLAY_CHECK_UNAVAILABLE: ErrorRule(
        503, True, "Another create request with this agent id is not finished yet."
    ),
    E.UPLOAD_RATE_LIMITED: ErrorRule(429, True, "Too many create requests in this second."),
    E.INTERNAL_ERROR: ErrorRule(500, False, "Something unexpected went wrong."),
    E.INVALID_REQUEST: ErrorRule(400, False, "The request is not valid."),
    E.INVALID_JSON: ErrorRule(400, False, "The body is not valid JSON."),
    E.CHECKSUM_MISMATCH: ErrorRule(400, False, "The bytes do not have the sha256 that was sent."),
    E.SIZE_MISMATCH: ErrorRule(400, False, "The size differs from the one declared."),
    E.METADATA_TOO_LARGE: ErrorRule(400, False, "The metadata is larger than the limit."),
    E.TOO_MANY_TAGS: ErrorRule(400, False, "There are more tags than the limit."),
    E.NOT_FOUND: ErrorRule(404, False, "There is nothing at this path."),
    E.SOURCE_NOT_FOUND: ErrorRule(404, False, "There is no such source."),
    E.TASK_NOT_FOUND: ErrorRule(404, False, "There is no such task."),
    E.BATCH_NOT_FOUND: ErrorRule(404, False, "There is no such batch."),
    E.SESSION_NOT_FOUND: ErrorRule(404, False, "There is no such upload session."),
    E.KEY_NOT_FOUND: ErrorRule(404, False, "There is no such key."),
    E.ORIGIN_NOT_ALLOWED: ErrorRule(403, False, "Requests from web pages are not allowed."),
    E.MODEL_NOT_ALLOWED: ErrorRule(403, False, "The API key may not use this model."),
    E.METHOD_NOT_ALLOWED: ErrorRule(405, False, "This path does not take this method."),
    E.BLOB_NOT_UPLOADED: ErrorRule(409, True, "The bytes have not all been uploaded."),
    E.OFFSET_MISMATCH: ErrorRule(409, True, "The chunk does not start where the stored bytes end."),
    E.SESSION_EXPIRED: ErrorRule(410, False, "The upload session has expired."),
    E.SESSION_CANCELED: ErrorRule(410, False, "The upload session was canceled."),
    E.EVENTS_EXPIRED: ErrorRule(410, False, "The event is no longer kept."),
    E.REQUEST_TIMEOUT: ErrorRule(408, True, "The request did not arrive in time."),
    E.HOST_NOT_ALLOWED: ErrorRule(421, False, "The Host header does not name this service."),
    E.HEADERS_TOO_LARGE: ErrorRule(431, False, "The headers are larger than the limit."),
    E.AGENT_EXISTS: ErrorRule(409, False, "An agent with this id exists."),
    E.REQUEST_TOO_LARGE: ErrorRule(413, False, "The body is larger than the limit."),
    E.UNSUPPORTED_MEDIA_TYPE: ErrorRule(415, False, "The body has the wrong media type."),
    E.QUOTA_EXCEEDED: ErrorRule(429, True, "The team's bytes for this minute are used up."),
    E.STORAGE_FULL: ErrorRule(503, True, "The disk is full; nothing was stored."),
    E.SHUTTING_DOWN: ErrorRule(503, True, "The service is stopping."),
    E.EXTRA_NOT_INSTALLED: ErrorRule(501, False, "The service was installed without the extra that this needs."),
}


def stored_error(code: ErrorCode | SourceErrorCode, message: str, *, retryable: bool) -> "SourceError":
    """Build the error object that is stored, and returned by the API."""
    return {"code": str(code), "message": message, "retryable": retryable}


class ServiceError(Exception):
    """An error response: a code, a message for people, and details for programs.

    A long message and long details are shortened, since they may quote the request.
    """

    def __init__(self, code: ErrorCode, message: str | None = None, **details: Any) -> None:
        self.code = code
        self.rule = ERRORS[code]
        self.message = shorten(message or self.rule.sentence)
        self.details: dict[str, Any] = shorten_all(details)
        super().__init__(f"{code}: {self.message}")

    def as_error(self) -> "SourceError":
        """Convert the error to the object that is stored, and returned by the API."""
        return stored_error(self.code, self.message, retryable=self.rule.retryable)


class NotFound(ServiceError):
    """The object does not exist, or belongs to another team. The response is the same in both cases."""


class StorageError(ServiceError):
    """The disk is full or failing; the operation was rolled back."""

    def __init__(self, message: str | None = None, **details: Any) -> None:
        super().__init__(E.STORAGE_FULL, message, **details)


class CommitUnknown(StorageError):
    """A commit failed, but may have taken effect. So stored bytes that the commit's rows name must not be deleted."""

    def __init__(self) -> None:
        super().__init__("The database failed during a commit, which may have been carried out.", retry_after_seconds=1)


#: `Retry-After` while a store is unavailable, in seconds.
UNAVAILABLE_RETRY_S = 5


class StoreUnavailable(StorageError):
    """A store on another machine does not answer. The operation was rolled back."""

    def __init__(self, message: str, engine: str = "") -> None:
        """`engine` is `postgresql`, `s3`, `milvus` or empty."""
        super().__init__(message, retry_after_seconds=UNAVAILABLE_RETRY_S, **({"engine": engine} if engine else {}))


class WrongEngine(StoreUnavailable):
    """An engine of the cluster lacks the mark of the installation. Nothing was read or written."""


class ShuttingDown(StorageError):
    """The service is stopping."""

    def __init__(self) -> None:
        ServiceError.__init__(self, E.SHUTTING_DOWN)
