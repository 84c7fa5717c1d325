"""The two formats of error responses, and limits on the length of their texts."""

from typing import Any

from typing_extensions import TypedDict

#: Maximum length of a text and of a list in an error, since an invalid value may be as long as the request.
MAX_ERROR_CHARACTERS, MAX_ERROR_ITEMS = 600, 100
_ERROR_END_CHARACTERS = 200


def shorten(text: str) -> str:
    """Return the text. If the text is too long, its middle is left out."""
    if len(text) <= MAX_ERROR_CHARACTERS:
        return text
    return f"{text[: MAX_ERROR_CHARACTERS - _ERROR_END_CHARACTERS - 1]}…{text[-_ERROR_END_CHARACTERS:]}"


def shorten_all(value: Any) -> Any:
    """Shorten the texts and lists in an error's details."""
    if isinstance(value, str):
        return shorten(value)
    if isinstance(value, dict):
        return {shorten_all(name): shorten_all(each) for name, each in value.items()}
    return [shorten_all(each) for each in value[:MAX_ERROR_ITEMS]] if isinstance(value, list | tuple) else value


class ErrorBody(TypedDict):
    code: str
    message: str
    retryable: bool
    details: dict[str, Any]


class ErrorEnvelope(TypedDict):
    """Body of an error response, except on the routes of OpenAI's API."""

    error: ErrorBody
    request_id: str


class OpenAIErrorBody(TypedDict):
    code: str
    message: str
    #: The kind of error for OpenAI's clients, such as `invalid_request_error`.
    type: str
    #: The dotted path of the first invalid field, if any.
    param: str | None


class OpenAIError(TypedDict):
    """Body of an error response on the routes of OpenAI's API."""

    error: OpenAIErrorBody
