"""The two formats of error responses (specification, Errors), and limits on how much they repeat of the request."""

from typing import Any

from svc_daemon.wire.models import WireModel

#: Maximum length of a text and of a list in an error. An invalid value may be as long as the whole request, so the
#: middle of a longer text and the end of a longer list are left out.
MAX_ERROR_CHARACTERS, MAX_ERROR_ITEMS = 600, 100
_ERROR_END_CHARACTERS = 200


def shorten(text: str) -> str:
    """Return the text, with its middle omitted if it is too long."""
    if len(text) <= MAX_ERROR_CHARACTERS:
        return text
    return f"{text[: MAX_ERROR_CHARACTERS - _ERROR_END_CHARACTERS - 1]}…{text[-_ERROR_END_CHARACTERS:]}"


def shorten_all(value: Any) -> Any:
    """Shorten every text in an error's details, and cut every list that is too long."""
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
    """The format of error responses, except for the routes of OpenAI's API."""

    error: ErrorBody
    request_id: str


class OpenAIErrorBody(WireModel):
    code: str
    message: str
    #: The kind of error, such as `invalid_request_error`, by which OpenAI's clients distinguish errors.
    type: str
    #: The first invalid field of the request, as a dotted path; null if no field is invalid.
    param: str | None


class OpenAIError(WireModel):
    """The format of error responses of the routes of OpenAI's API."""

    error: OpenAIErrorBody
