"""Whether a quote stands in the text of its source, at the place that the answer gives."""

from collections.abc import Sequence
from typing import NamedTuple

from svc_daemon.core.answers.passages import QuotePlace
from svc_daemon.core.text.chunking import Chunk, Extraction
from svc_daemon.wire.openai.citations import ProofResult


class Proof(NamedTuple):
    """The result for one quote, and a sentence that explains it."""

    result: ProofResult
    message: str

    @property
    def is_proven(self) -> bool:
        return self.result == "proven"


SOURCE_GONE = Proof("source_gone", "the source was deleted or replaced")
BYTES_LOST = Proof("bytes_lost", "the stored bytes are gone")
BYTES_CHANGED = Proof("bytes_changed", "the stored bytes are not those that were uploaded")


def prove(quote: str, place: QuotePlace, extraction: Extraction) -> Proof:
    """Check that the quote is at its place in the extracted text, and on its page and lines, if any are named."""
    text = extraction.text
    if not quote or quote not in text:
        return Proof("not_found", "the source does not contain these words")
    if place.char_start < 0 or text[place.char_start : place.char_end] != quote:
        return Proof("elsewhere", "the source contains these words, but not at this place")
    around = [
        chunk for chunk in extraction.chunks if chunk.char_start < place.char_end and place.char_start < chunk.char_end
    ]
    pages = {chunk.page for chunk in around}
    if place.page is not None and place.page not in pages:
        listed = ", ".join(str(page) for page in sorted(page for page in pages if page))
        return Proof("elsewhere", f"these words are on page {listed}" if listed else "the source has no pages")
    if not _has_lines(around, place.line_start, place.line_end):
        return Proof("elsewhere", "these words are on other lines")
    if any(str(page) in extraction.recognized_pages for page in pages):
        return Proof("proven", "in what was recognised on the page, word for word")
    return Proof("proven", "in the stored bytes, word for word")


def _has_lines(around: Sequence[Chunk], first: int | None, last: int | None) -> bool:
    """Whether the quote's lines fit those of the passages around it.

    Line numbers are None for formats without lines, and where a client names none; of two, one is enough. Passages may
    have been split differently since the answer, so either range may contain the other.
    """
    first, last = last if first is None else first, first if last is None else last
    if first is None or last is None:
        return True
    starts = [chunk.line_start for chunk in around if chunk.line_start is not None]
    ends = [chunk.line_end for chunk in around if chunk.line_end is not None]
    if not starts or not ends:
        return False
    return min(starts) <= first <= last <= max(ends) or first <= min(starts) <= max(ends) <= last
