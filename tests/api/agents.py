"""Agents over the API, as tests make, change and look at them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import httpx

from svc_daemon.core.access import api_keys
from svc_daemon.core.search.agents import RetrievalPolicy, TeamAgent
from svc_daemon.store.rows.agents import create_agent, find_agent, put_agent
from tests.api.answers import body_of, details_of
from tests.api.daemons import Daemon

FILTERS = {"type": "eq", "key": "lang", "value": "en"}
OUT_OF_REACH = {"required_capability": api_keys.AGENT_MANAGE}


def make(daemon: Daemon, agent_id: str | None, repeat_key: str | None = None, **options: Any) -> httpx.Response:
    key, fields = options.pop("key", None), options
    body = fields if agent_id is None else {"agent_id": agent_id, **fields}
    return daemon.ask("POST", "/v1/agents", key=key, repeat_key=repeat_key, json=body)


def made(daemon: Daemon, agent_id: str | None, **options: Any) -> dict[str, Any]:
    """The answer to a create that works."""
    return body_of(make(daemon, agent_id, **options), 201)


def change(daemon: Daemon, agent_id: str, key: str | None = None, **fields: Any) -> httpx.Response:
    return daemon.ask("PUT", f"/v1/agents/{agent_id}", key=key, json=fields)


def changed(daemon: Daemon, agent_id: str, **fields: Any) -> dict[str, Any]:
    """The answer to an update that works."""
    return body_of(change(daemon, agent_id, **fields))


def show(daemon: Daemon, agent_id: str) -> dict[str, Any]:
    return daemon.show(f"/v1/agents/{agent_id}")


def listed(daemon: Daemon, key: str | None = None, **query: str) -> list[str]:
    return [agent["id"] for agent in daemon.show("/v1/agents", key=key, **query)["agents"]]


def faults(answer: httpx.Response) -> list[str]:
    """The paths that an `invalid_agent_profile` is about."""
    errors = details_of(answer, "invalid_agent_profile")["errors"]
    assert all(error["message"] for error in errors)
    return [error["path"] for error in errors]


def store_agent(daemon: Daemon, agent_id: str, **policy: Any) -> str:
    """Write a named agent with this policy into the state, where the API would refuse it too; its model id."""
    team_id, now, parsed = daemon.team_id, daemon.context.clock.timestamp(), RetrievalPolicy(**policy)
    agent = TeamAgent(id=agent_id, team_id=team_id, name=agent_id, policy=parsed, created_at=now, updated_at=now)
    _write(daemon, agent)
    return f"svc-agent:{agent_id}"


def _write(daemon: Daemon, agent: TeamAgent) -> None:
    """Store the agent, whether there is one of its id or not."""
    if not daemon.write(lambda connection: create_agent(connection, agent)):
        daemon.write(lambda connection: put_agent(connection, agent))


def bucket_id(daemon: Daemon, slug: str) -> str:
    return str(daemon.show(f"/v1/buckets/{slug}")["id"])


def agent_of(daemon: Daemon, slug: str) -> str:
    """The model id of an agent that searches this bucket alone."""
    return store_agent(daemon, f"only-{slug}", bucket_ids=(bucket_id(daemon, slug),))


@contextmanager
def changed_default(daemon: Daemon, policy: RetrievalPolicy | None = None) -> Iterator[None]:
    """Put the default agent back at the end of the block; until then it has this policy, if one is given."""
    agent = daemon.read(lambda connection: find_agent(connection, daemon.team_id, "default"))
    assert agent is not None
    if policy is not None:
        _write(daemon, replace(agent, policy=policy))
    try:
        yield
    finally:
        _write(daemon, agent)
