"""The two envelopes that carry an error (specification, Errors), and how much of what was sent they repeat."""

from typing import Any

from svc_daemon.wire.models import WireModel

#: Longer texts in an error are shown without their middle, and longer lists by their beginning. What is wrong may be as
#: long as the whole body that was sent, and neither people nor programs want it back.
MAX_ERROR_CHARACTERS, MAX_ERROR_ITEMS = 600, 100
_ERROR_END_CHARACTERS = 200


def shorten(text: str) -> str:
    """The text, or its beginning and its end."""
    if len(text) <= MAX_ERROR_CHARACTERS:
        return text
    return f"{text[: MAX_ERROR_CHARACTERS - _ERROR_END_CHARACTERS - 1]}…{text[-_ERROR_END_CHARACTERS:]}"


def shorten_all(value: Any) -> Any:
    """The same of every text in details, and the beginning of each list."""
    if isinstance(value, str):
        return shorten(value)
    if isinstance(value, dict):
        return {shorten_all(name): shorten_all(each) for name, each in value.items()}
    return [shorten_all(each) for each in value[:MAX_ERROR_ITEMS]] if isinstance(value, list | tuple) else value


class ErrorBody(WireModel):
    code: str
    message: str
    retryable: bool
    details: dict[str, Any]


class ErrorEnvelope(WireModel):
    """Every error of the search, ingest and manage surfaces."""

    error: ErrorBody
    request_id: str


class OpenAIErrorBody(WireModel):
    code: str
    message: str
    #: Such as `invalid_request_error`; what OpenAI's clients sort errors by besides the status.
    type: str
    #: The field of the request that is wrong, dotted; null where it is no single one.
    param: str | None


class OpenAIError(WireModel):
    """Every error of the routes that OpenAI's clients call."""

    error: OpenAIErrorBody
