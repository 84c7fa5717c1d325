"""The interface of a language model."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from svc_daemon.core.answers.conversations import Message


class LlmFailed(Exception):
    """The model returned no answer or only part of it. The message contains no secrets."""

    def __init__(self, message: str, *, is_timeout: bool = False) -> None:
        super().__init__(message)
        self.is_timeout = is_timeout


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts, as the model's server reports them."""

    input_tokens: int
    output_tokens: int


#: Why an answer is incomplete: it reached the maximum length, or a content filter stopped it.
Cut = Literal["length", "content_filter"]


@dataclass(frozen=True, slots=True)
class Ending:
    """What a model reports after the text of an answer."""

    #: Why the answer is incomplete; None if it is complete.
    cut: Cut | None = None
    #: None if the server does not report token counts.
    usage: Usage | None = None


class Llm(Protocol):
    """A language model that writes answers."""

    #: The model's name, as sent to the server.
    model: str

    def write(self, messages: Sequence[Message]) -> AsyncGenerator[str | Ending, None]:
        """Yield the answer piece by piece, then an Ending.

        May raise LlmFailed at any point. Closing the generator cancels the request.
        """
        ...

    async def look(self) -> str | None:
        """Check quickly whether the server is usable, without requesting an answer.

        Return an error message or None.
        """
        ...

    def stop(self) -> None:
        """Make answers in progress and all later ones fail with LlmFailed, because the daemon is stopping."""

    async def close(self) -> None:
        """Close all connections to the server."""
