"""Parses the event stream of a chat completion into pieces of text."""

from collections.abc import Iterator
from typing import Any

from svc_daemon.llm.contract import Cut, Ending, LlmFailed, Usage
from svc_daemon.wire.parsing import parse_json

#: Maximum length of a line in bytes.
LINE_BYTES = 256 * 1024
#: Maximum token count that is accepted; larger numbers would not fit the database column.
MOST_TOKENS = 10**12
#: The finish reasons of an answer that was cut off. With any other finish reason, the answer is complete.
_CUTS: dict[str, Cut] = {"length": "length", "content_filter": "content_filter"}


class ChatStream:
    """Parses one stream, fed in pieces that may be split at any byte."""

    def __init__(self) -> None:
        self._line = b""
        self._reason: str | None = None
        self._usage: Usage | None = None
        #: Whether the end marker `[DONE]` has been read.
        self.is_done = False

    def feed(self, data: bytes) -> Iterator[str]:
        """Yield the new text in `data`. Raises LlmFailed if the stream is invalid."""
        *lines, self._line = (self._line + data).split(b"\n")
        for line in lines:
            field, _, value = line.strip().partition(b":")
            # Ignore comments, event names, empty lines, and everything after the end.
            if field != b"data" or self.is_done:
                continue
            if value.strip() == b"[DONE]":
                self.is_done = True
                continue
            try:
                event = parse_json(value)
            except ValueError as error:
                raise _garbage() from error
            if not isinstance(event, dict) or not isinstance(event.get("choices") or [], list):
                raise _garbage()
            if event.get("error"):
                raise LlmFailed("The model's server failed while it wrote the answer.")
            self._usage = _usage(event) or self._usage
            for choice in event.get("choices") or ():
                yield self._take(choice)
        if len(self._line) > LINE_BYTES:
            raise LlmFailed("The model's server sent a line without an end.")

    def end(self) -> Ending:
        """Return how the answer ended. Raises LlmFailed if the stream broke off."""
        if self._reason is None and not self.is_done:
            raise LlmFailed("The model's server stopped in the middle of its answer.")
        return Ending(_CUTS.get(self._reason or ""), self._usage)

    def _take(self, choice: Any) -> str:
        try:
            self._reason = str(choice.get("finish_reason") or "") or self._reason
            text = (choice.get("delta") or {}).get("content") or ""
        except AttributeError as error:
            raise _garbage() from error
        if not isinstance(text, str):
            raise _garbage()
        # Replace surrogates: JSON can contain them, but UTF-8 can't.
        return text.encode("utf-8", "replace").decode()


def _usage(event: dict[str, Any]) -> Usage | None:
    usage = event.get("usage")
    if not isinstance(usage, dict):
        return None
    counts = usage.get("prompt_tokens"), usage.get("completion_tokens")
    taken, given = (count if isinstance(count, int) and 0 <= count <= MOST_TOKENS else 0 for count in counts)
    return Usage(taken, given)


def _garbage() -> LlmFailed:
    return LlmFailed("The model's server sent something that is not a chat completion.")
