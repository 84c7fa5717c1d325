"""Models that responses and chat completions share: annotations and cited sources."""

from collections.abc import Callable
from typing import Any, Literal

from typing_extensions import TypedDict

from svc_daemon.wire.sources import Location


def in_parts(kind: str) -> Callable[[Any], Any]:
    """Return a validator that converts a string to a list with one part, whose type is `kind`."""
    return lambda sent: [{"type": kind, "text": sent}] if isinstance(sent, str) else sent


class Annotation(TypedDict):
    """A citation mark in the text, in OpenAI's format, with its quote."""

    type: Literal["file_citation"]
    #: The id of the source.
    file_id: str
    filename: str
    #: Character offset of the citation mark, such as `[1]`, in the answer's text.
    index: int
    #: The number in the citation mark: 1 for `[1]`.
    number: int
    quote: str
    location: Location


class AnswerSource(TypedDict):
    """A quote that supports the answer, and its location."""

    #: The number in the citation marks for this source: 1 for `[1]`.
    number: int
    source_id: str
    chunk_id: str
    bucket_ids: list[str]
    filename: str
    title: str
    source_url: str | None
    #: The score of the passage that contains the quote.
    score: float
    #: The extracted text from `location.char_start` to `location.char_end`.
    quote: str
    #: The location of the quote, not of the whole passage.
    location: Location
