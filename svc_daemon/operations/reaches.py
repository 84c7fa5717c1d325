"""How far an agent reaches, beside the key that looks at it or changes it.

Others use an agent too, and with their keys a wider policy would retrieve more; and a key that is kept to some agents
retrieves what these do and nothing else. So a key that is kept to some buckets changes an agent only where what that
retrieves lies in them, before the change and after it; and one that is kept to some agents writes a policy only where
one of these retrieves all of it already. What a key can't reach, an agent's policy doesn't tell it either.
"""

from dataclasses import replace
from sqlite3 import Connection

from svc_daemon.core import api_keys
from svc_daemon.core.agents import BUCKETS, EVERY_BUCKET, EVERYTHING, NOTHING, SOURCES, Agent, Policy
from svc_daemon.core.model_ids import is_allowed
from svc_daemon.errors import ServiceError
from svc_daemon.store.agents import list_agents
from svc_daemon.store.keys import Key
from svc_daemon.store.sources import find_source
from svc_daemon.wire.codes import ErrorCode


def widest_policy(key: Key) -> Policy:
    """What the key retrieves without an agent: the policy of a new agent that is given none."""
    if key.models is not None:
        return NOTHING
    return EVERYTHING if key.buckets is None else Policy(bucket_ids=key.buckets)


def visible_policy(connection: Connection, key: Key, policy: Policy) -> Policy:
    """The policy without the buckets and sources that the key can't reach."""
    if key.buckets is None:
        return policy
    buckets = (bucket for bucket in policy.bucket_ids if bucket == EVERY_BUCKET or bucket in key.buckets)
    sources = (source_id for source_id in policy.source_ids if _is_reachable(connection, key, source_id))
    return replace(policy, bucket_ids=tuple(buckets), source_ids=tuple(sources))


def refuse_out_of_reach(connection: Connection, key: Key, agent: Agent) -> None:
    """Raises `forbidden_project_key` where the agent retrieves, or may, what the key's buckets don't hold."""
    if key.buckets is None or (agent.policy_fault is None and _is_within_buckets(connection, key, agent.policy)):
        return
    raise _forbidden(f"The agent {agent.id!r} reaches further than this key; it takes a key that reaches all of it.")


def refuse_wider(connection: Connection, key: Key, policy: Policy) -> None:
    """Raises `forbidden_project_key` where none of the key's agents retrieves all that the policy does."""
    if key.models is None:
        return
    known = [agent.policy for agent in list_agents(connection, key.team_id) if is_allowed(key.models, agent.id)]
    if not any(policy.is_within(each) for each in (NOTHING, *known)):
        raise _forbidden(
            "The policy retrieves more than each of the agents that this key may use; it takes a key for all agents."
        )


def _is_within_buckets(connection: Connection, key: Key, policy: Policy) -> bool:
    if policy.scope == BUCKETS:
        return set(policy.bucket_ids) <= set(key.buckets or ())
    return policy.scope == SOURCES and all(_is_reachable(connection, key, each) for each in policy.source_ids)


def _is_reachable(connection: Connection, key: Key, source_id: str) -> bool:
    """Whether the source is in a bucket of the key, or gone."""
    source = find_source(connection, key.team_id, source_id)
    return source is None or not source.places.keys().isdisjoint(key.buckets or ())


def _forbidden(message: str) -> ServiceError:
    return ServiceError(ErrorCode.FORBIDDEN_PROJECT_KEY, message, required_capability=api_keys.AGENT_MANAGE)
