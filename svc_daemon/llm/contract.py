"""What a model takes, returns and guarantees."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from svc_daemon.core.answers.conversations import Message


class LlmFailed(Exception):
    """The model gave no answer, or not the whole of it; the message is a sentence without anything secret in it."""

    def __init__(self, message: str, *, is_timeout: bool = False) -> None:
        super().__init__(message)
        self.is_timeout = is_timeout


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the model's server counts them."""

    input_tokens: int
    output_tokens: int


#: Why an answer stops before its end, in the words of OpenAI's chat: it was not allowed to be longer, or its server's
#: filter took the rest.
Cut = Literal["length", "content_filter"]


@dataclass(frozen=True, slots=True)
class Ending:
    """How the model came to its end."""

    #: Why it did not come to its own end; None where it did.
    cut: Cut | None = None
    #: None where its server doesn't report it.
    usage: Usage | None = None


class Llm(Protocol):
    """Writes answers."""

    #: Its name, as it is asked for.
    model: str

    def write(self, messages: Sequence[Message]) -> AsyncGenerator[str | Ending, None]:
        """The answer piece by piece as it is written, and an Ending last; closing the generator ends the work.

        Raises LlmFailed, at any point, and within the time that it is given.
        """
        ...

    async def look(self) -> str | None:
        """A sentence on what is wrong with its server, or None; within a few seconds, and without an answer written."""
        ...

    def stop(self) -> None:
        """The service stops: every answer that is being written fails with LlmFailed, and so does each new one."""

    async def close(self) -> None:
        """Close all connections."""
