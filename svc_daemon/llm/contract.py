"""The interface of a language model: its parameters and results, and what callers can rely on."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from svc_daemon.core.answers.conversations import Message


class LlmFailed(Exception):
    """The model returned no answer, or only a part of it. The message is a sentence that contains no secrets."""

    def __init__(self, message: str, *, is_timeout: bool = False) -> None:
        super().__init__(message)
        self.is_timeout = is_timeout


@dataclass(frozen=True, slots=True)
class Usage:
    """Numbers of tokens of a request and its answer, as the model's server reports them."""

    input_tokens: int
    output_tokens: int


#: Why an answer is incomplete, as a `finish_reason` of OpenAI's API: its maximum length, or the content filter.
Cut = Literal["length", "content_filter"]


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of an answer: whether the answer is complete, and how many tokens were used."""

    #: Why the answer is incomplete; None if it is complete.
    cut: Cut | None = None
    #: Numbers of tokens that were used; None if the server does not report them.
    usage: Usage | None = None


class Llm(Protocol):
    """A language model that writes answers."""

    #: The model's name, as sent to the server.
    model: str

    def write(self, messages: Sequence[Message]) -> AsyncGenerator[str | Ending, None]:
        """Yield the answer piece by piece as it is written, then an Ending.

        If the generator is closed, the request is cancelled. May raise LlmFailed at any point; never takes longer than
        its time limits.
        """
        ...

    async def look(self) -> str | None:
        """Check within a few seconds whether the server is usable, without requesting an answer.

        Return an error message or None.
        """
        ...

    def stop(self) -> None:
        """Make all answers in progress, and all later ones, fail with LlmFailed, because the service is stopping."""

    async def close(self) -> None:
        """Close all connections to the server."""
