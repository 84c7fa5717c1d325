"""The interface of a language model: its parameters, results and guarantees."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from svc_daemon.core.answers.conversations import Message


class LlmFailed(Exception):
    """The model gave no answer, or only part of it; the message is a sentence that contains no secrets."""

    def __init__(self, message: str, *, is_timeout: bool = False) -> None:
        super().__init__(message)
        self.is_timeout = is_timeout


@dataclass(frozen=True, slots=True)
class Usage:
    """The number of tokens, as reported by the model's server."""

    input_tokens: int
    output_tokens: int


#: Why an answer is incomplete, as a `finish_reason` of OpenAI's API: the maximum length, or the content filter.
Cut = Literal["length", "content_filter"]


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of an answer: whether it is complete, and how many tokens it took."""

    #: Why the answer is incomplete; None if it is complete.
    cut: Cut | None = None
    #: Number of tokens of the exchange; None if the server doesn't report it.
    usage: Usage | None = None


class Llm(Protocol):
    """A language model that writes answers."""

    #: The model's name, as sent to the server.
    model: str

    def write(self, messages: Sequence[Message]) -> AsyncGenerator[str | Ending, None]:
        """Yield the answer piece by piece as it is written, then an Ending; closing the generator cancels the request.

        May raise LlmFailed at any point; never takes longer than its time limits.
        """
        ...

    async def look(self) -> str | None:
        """Check the server within a few seconds, without requesting an answer; return an error message or None."""
        ...

    def stop(self) -> None:
        """Make all answers in progress, and all later ones, fail with LlmFailed, because the service is stopping."""

    async def close(self) -> None:
        """Close all connections."""
