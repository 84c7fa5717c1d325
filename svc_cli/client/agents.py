"""Creates, lists, changes and deletes agents, and lists them as models."""

from typing import TYPE_CHECKING, Literal, Unpack, overload

from svc_cli.client.calls import Calls, key_or_random, part
from svc_cli.client.transport import Request

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
        return self._transport.send(
            Request(
                method="POST",
                path="/v1/agents",
                params={"dry_run": "true"} if dry_run else None,
                json=fields,
                idempotency_key=key_or_random(idempotency_key),
            )
        ).body

    def update_agent(self, agent_id: str, **changes: "Unpack[AgentUpdateDict]") -> "AgentAnswerDict":
        """Change the given fields of an agent or of its `policy`. Other fields keep their values."""
        return self._call("PUT", f"/v1/agents/{part(agent_id)}", json=changes)

    def delete_agent(self, agent_id: str, *, force: bool = False) -> "AgentDeletedDict":
        """Delete an agent. `force` is required if `bound_surface` (where the agent is used) is set."""
        return self._call("DELETE", f"/v1/agents/{part(agent_id)}", params={"force": "true"} if force else None)

    def models(self) -> "ModelListDict":
        """Return the agents as OpenAI's model list: `{object: "list", data: [{id, created, owned_by}]}`."""
        return self._get("/v1/models")
