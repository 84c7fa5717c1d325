"""Makes passages for tests of answers."""

from svc_daemon.core.answers.passages import Passage
from svc_daemon.core.text.chunking import Chunk


def passage(text: str, *, title: str = "", headings: tuple[str, ...] = (), start: int = 0, **weights: float) -> Passage:
    """Return a passage with this text at offset `start` of its source. `weights` are those of the question's words."""
    chunk = Chunk(ordinal=0, text=text, char_start=start, char_end=start + len(text), headings=headings)
    return Passage(chunk=chunk, title=title, weights=weights)
