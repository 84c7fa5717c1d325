"""The two error envelopes (specification, Errors), and limits on how much of the request they repeat."""

from typing import Any

from svc_daemon.wire.models import WireModel

#: Longer texts in an error are shown without their middle, and longer lists by their beginning. What is wrong may be as
#: long as the whole body that was sent, and neither people nor programs want it back.
MAX_ERROR_CHARACTERS, MAX_ERROR_ITEMS = 600, 100
_ERROR_END_CHARACTERS = 200


def shorten(text: str) -> str:
    """Return the text, with its middle omitted if it is too long."""
    if len(text) <= MAX_ERROR_CHARACTERS:
        return text
    return f"{text[: MAX_ERROR_CHARACTERS - _ERROR_END_CHARACTERS - 1]}…{text[-_ERROR_END_CHARACTERS:]}"


def shorten_all(value: Any) -> Any:
    """Shorten every text in details, and truncate each list."""
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
    #: Such as `invalid_request_error`; OpenAI's clients classify errors by it and the status.
    type: str
    #: The field of the request that is wrong, as a dotted path; null unless it is a single field.
    param: str | None


class OpenAIError(WireModel):
    """Every error of the routes that OpenAI's clients call."""

    error: OpenAIErrorBody
