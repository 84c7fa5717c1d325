"""Types of answers. Made from `svc_daemon.wire` by `python -m tests.rules.client_types`."""

from typing import Literal, TypedDict

from svc_cli.client.types.sources import LocationDict


class AnnotationDict(TypedDict):
    """A citation mark in the text, in OpenAI's format, with its quote."""

    type: Literal["file_citation"]
    file_id: str
    """The id of the source."""
    filename: str
    index: int
    """Character offset of the citation mark, such as `[1]`, in the answer's text."""
    number: int
    """The number in the citation mark: 1 for `[1]`."""
    quote: str
    location: LocationDict


class AnswerSourceDict(TypedDict):
    """A quote that supports the answer, and its location."""

    number: int
    """The number in the citation marks for this source: 1 for `[1]`."""
    source_id: str
    chunk_id: str
    bucket_ids: list[str]
    filename: str
    title: str
    source_url: str | None
    score: float
    """The score of the passage that contains the quote."""
    quote: str
    """The extracted text from `location.char_start` to `location.char_end`."""
    location: LocationDict
    """The location of the quote, not of the whole passage."""
