"""Errors as OpenAI's clients read them, on the routes that those clients call (specification, Errors).

`{"error": {"code", "message", "type", "param"}}` and nothing beside it: the request's id and whether to try again stand
in the headers, where every answer has the one and every error the other.
"""

from svc_daemon.errors import ServiceError
from svc_daemon.wire.codes import ErrorCode
from svc_daemon.wire.errors import OpenAIError, OpenAIErrorBody

_PATHS = ("/v1/responses", "/v1/chat/completions", "/v1/models")
_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}


def is_openai_path(path: str) -> bool:
    """Whether OpenAI's own client calls this path and expects its errors there."""
    return any(path == prefix or path.startswith(f"{prefix}/") for prefix in _PATHS)


def openai_error(error: ServiceError) -> OpenAIError:
    """The error as OpenAI would tell it; `param` is the first field that it is about."""
    fields = error.details.get("errors") or [{}]
    body = OpenAIErrorBody(
        code=error.code, message=error.message, type=error_type(error), param=fields[0].get("path") or None
    )
    return OpenAIError(error=body)


def error_type(error: ServiceError) -> str:
    """OpenAI's word for the kind of error."""
    if error.code is ErrorCode.RAG_QUOTA_EXCEEDED:
        return "insufficient_quota"
    if error.rule.status >= 500:
        return "server_error"
    return _TYPES.get(error.rule.status, "invalid_request_error")
