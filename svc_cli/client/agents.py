"""Creates, lists, changes and deletes agents, and lists them as models."""

from collections.abc import Mapping
from typing import Any

from svc_cli.client.calls import Calls, part
from svc_cli.client.transport import Request
from svc_daemon.wire import Json


class AgentCalls(Calls):
    """The client's methods that list, create, change and delete agents."""

    def agents(self) -> Json:
        """Return `{team_id, agents: [...], request_id}`: the agents that the key may use, the default one included."""
        return self._get("/v1/agents")

    def agent(self, agent_id: str) -> Json:
        """Return one agent; the id of the default agent is `default`."""
        return self._get(f"/v1/agents/{part(agent_id)}")

    def create_agent(
        self, fields: Mapping[str, Any], idempotency_key: str | None = None, *, dry_run: bool = False
    ) -> Json:
        """Create an agent from `{agent_id, name, role, instructions, policy, bound_surface}`."""
        return self._transport.send(
            Request(
                method="POST",
                path="/v1/agents",
                params={"dry_run": "true"} if dry_run else None,
                json=dict(fields),
                idempotency_key=idempotency_key,
            )
        ).body

    def update_agent(self, agent_id: str, changes: Mapping[str, Any]) -> Json:
        """Change the given fields; other fields keep their values, including those inside the policy."""
        return self._call("PUT", f"/v1/agents/{part(agent_id)}", json=dict(changes))

    def delete_agent(self, agent_id: str, *, force: bool = False) -> Json:
        """Delete an agent; `force` is required if its `bound_surface` is set."""
        return self._call("DELETE", f"/v1/agents/{part(agent_id)}", params={"force": "true"} if force else None)

    def models(self) -> Json:
        """Return the agents as OpenAI's model list: `{object: "list", data: [{id, created, owned_by}]}`."""
        return self._get("/v1/models")
