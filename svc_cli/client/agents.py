"""Manages agents, and asks them questions."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from svc_cli.client.calls import Calls, part
from svc_cli.client.transport import Request
from svc_cli.errors import ApiError, NetworkFailed

if TYPE_CHECKING:
    from svc_cli.client.types import (
        AgentAnswerDict,
        AgentCreateDict,
        AgentDeletedDict,
        AgentListDict,
        AgentUpdateDict,
        DryRunDict,
        ModelListDict,
    )


class AgentCalls(Calls):
    """The client's methods for agents."""

    def agents(self) -> "AgentListDict":
        """Return the agents that the key may use, including the default agent."""
        return self._get("/v1/agents")

    def agent(self, agent_id: str) -> "AgentAnswerDict":
        """Return one agent; the id of the default agent is `default`."""
        return self._get(f"/v1/agents/{part(agent_id)}")

    @overload
    def create_agent(
        self,
        *,
        idempotency_key: str | None = None,
        dry_run: Literal[False] = False,
        **fields: "Unpack[AgentCreateDict]",
    ) -> "AgentAnswerDict": ...

    @overload
    def create_agent(
        self, *, idempotency_key: str | None = None, dry_run: bool, **fields: "Unpack[AgentCreateDict]"
    ) -> "AgentAnswerDict | DryRunDict": ...

    def create_agent(
        self, *, idempotency_key: str | None = None, dry_run: bool = False, **fields: "Unpack[AgentCreateDict]"
    ) -> "AgentAnswerDict | DryRunDict":
        """Create an agent; with `dry_run`, only return what would be created."""
        return self._make("/v1/agents", fields, idempotency_key, dry_run=dry_run)

    def update_agent(self, agent_id: str, **changes: "Unpack[AgentUpdateDict]") -> "AgentAnswerDict":
        """Change the given fields of an agent or of its `policy`. Other fields keep their values."""
        return self._call("PUT", f"/v1/agents/{part(agent_id)}", json=changes)

    def delete_agent(self, agent_id: str, *, force: bool = False) -> "AgentDeletedDict":
        """Delete an agent. `force` is required if `bound_surface` (where the agent is used) is set."""
        return self._call("DELETE", f"/v1/agents/{part(agent_id)}", params={"force": "true"} if force else None)

    def models(self) -> "ModelListDict":
        """Return the agents as OpenAI's model list: `{object: "list", data: [{id, created, owned_by}]}`."""
        return self._get("/v1/models")


if TYPE_CHECKING:
    from svc_cli.client.types import (
        AskOptions,
        CheckedQuotesDict,
        QuoteToCheckDict,
        ResponseDict,
        SourceRereadDict,
    )

    #: A question, or messages in the format of OpenAI's API.
    Conversation = str | Sequence[Mapping[str, Any]]

#: Read timeout in seconds, longer than the daemon's own timeout for the language model.
SILENCE_S = 600.0
#: The `model` that means the default agent.
DEFAULT_MODEL = "svc-agent"


class AnswerCalls(Calls):
    """The client's methods to ask questions and to check the quotes of answers."""

    def ask(
        self, input: "Conversation", *, model: str = DEFAULT_MODEL, **options: "Unpack[AskOptions]"
    ) -> "ResponseDict":
        """Ask a question, or the last question of a conversation, and return the answer.

        `answer_text` returns the answer's text."""
        body = {"model": model, "input": input, **options}
        request = Request(method="POST", path="/v1/responses", json=body, silence_s=SILENCE_S)
        return self._transport.send(request).body

    def ask_streaming(
        self, input: "Conversation", *, model: str = DEFAULT_MODEL, **options: "Unpack[AskOptions]"
    ) -> Iterator[dict[str, Any]]:
        """Ask a question like `ask`, and yield the response's events as they arrive, in OpenAI's format.

        The last event, `response.completed` or `response.incomplete`, has the whole answer. Raises ApiError if the
        answer fails, and NetworkFailed if the stream ends early.
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

    def verify_citations(
        self, text: str, quotes: "Sequence[QuoteToCheckDict]", *, question: str = ""
    ) -> "CheckedQuotesDict":
        """Prove the quotes that have a source, and compare the sentences of the text with the quotes that they cite."""
        body = {"text": text, "quotes": list(quotes), "question": question}
        return self._transport.send(Request(method="POST", path="/v1/citations/verify", json=body)).body

    def read_source_again(self, source_id: str) -> "SourceRereadDict":
        """Return a source's text, extracted again from its stored bytes, which are checked first."""
        return self._get(f"/v1/sources/{part(source_id)}/text", {"verify": "content"})


def answer_text(answer: "ResponseDict") -> str:
    """Return an answer's text, with a mark such as `[1]` after each supported sentence."""
    return "".join(part["text"] for message in answer["output"] for part in message["content"])


#: Types of the last event of a stream, which has the whole answer.
ENDS = ("response.completed", "response.incomplete")
