"""Asks an agent a question, and returns the answer as a whole or streams it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from svc_cli.client.calls import Calls, part
from svc_cli.client.transport import Request
from svc_cli.errors import ApiError, NetworkFailed

if TYPE_CHECKING:
    from svc_cli.client.types import (
        AskOptions,
        ResponseDict,
        SourceRereadDict,
    )

    #: A question, or the messages of a conversation as OpenAI's API has them.
    Conversation = str | Sequence[Mapping[str, Any]]

#: Read timeout in seconds. It is long, because the daemon itself limits how long a model may take.
SILENCE_S = 600.0
#: The `model` of a request that asks the default agent.
DEFAULT_MODEL = "svc-agent"


class AnswerCalls(Calls):
    """The client's methods that ask questions, and `read_source_again`, with which an answer can be checked."""

    def ask(
        self, input: "Conversation", *, model: str = DEFAULT_MODEL, **options: "Unpack[AskOptions]"
    ) -> "ResponseDict":
        """Ask an agent a question, or the last question of a conversation, and return the answer.

        `answer_text` returns the text of the answer.
        """
        body = {"model": model, "input": input, **options}
        request = Request(method="POST", path="/v1/responses", json=body, silence_s=SILENCE_S)
        return self._transport.send(request).body

    def ask_streaming(
        self, input: "Conversation", *, model: str = DEFAULT_MODEL, **options: "Unpack[AskOptions]"
    ) -> Iterator[dict[str, Any]]:
        """Ask a question like `ask`, and yield the events of the response as they arrive, in the format of OpenAI's
        API.

        The last event, `response.completed` or `response.incomplete`, contains the whole answer. Raises ApiError if
        generating the answer fails, and NetworkFailed if the stream ends prematurely.
        """
        body = {"model": model, "input": input, "stream": True, **options}
        request = Request(method="POST", path="/v1/responses", json=body, silence_s=SILENCE_S)
        kind = None
        for event in self._transport.stream(request):
            kind = event.get("type")
            if kind == "error":
                raise ApiError(500, {**event, "retryable": True})
            yield event
        if kind not in ENDS:
            raise NetworkFailed("The answer broke off before it was complete.", hint="ask again.")

    def read_source_again(self, source_id: str) -> "SourceRereadDict":
        """Return a source's text, extracted again after the service has checked that the stored bytes are unchanged."""
        return self._get(f"/v1/sources/{part(source_id)}/text", {"verify": "content"})


def answer_text(answer: "ResponseDict") -> str:
    """Return the text of an answer, with a mark such as `[1]` after each sentence that a source supports."""
    return "".join(part["text"] for message in answer["output"] for part in message["content"])


#: The types of the last event of a stream, which contains the whole answer.
ENDS = ("response.completed", "response.incomplete")
