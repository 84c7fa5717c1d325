"""Creates, lists, shows, changes and deletes agents, within the limits of the caller's key.

A key can't let an agent retrieve more than the key itself can.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from svc_daemon.core import ids
from svc_daemon.core.access import api_keys
from svc_daemon.core.access.model_ids import DEFAULT_AGENT, is_allowed, is_model_spelling, model_of
from svc_daemon.core.json_bodies import refusal
from svc_daemon.core.search import agents
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import NotFound, ServiceError
from svc_daemon.operations.shared.authorization import require_model
from svc_daemon.operations.shared.idempotency import Creation, replaying, store_answer
from svc_daemon.operations.shared.reachable_rows import get_lasting_bucket, get_reachable_source
from svc_daemon.process.contexts import Context
from svc_daemon.store.rows import agents as store
from svc_daemon.store.rows.agents import list_agents
from svc_daemon.store.rows.buckets import BucketRow
from svc_daemon.store.rows.keys import KeyRow
from svc_daemon.store.rows.sources.sources import SourceRow, find_source
from svc_daemon.wire import agents as wire
from svc_daemon.wire.light.error_codes import ErrorCode


def refuse_out_of_reach(connection: Connection, key: KeyRow, agent: agents.TeamAgent) -> None:
    """Raise `forbidden_project_key` if the agent may retrieve anything that the key can't reach."""
    if not key.is_limited:
        return
    policy = agent.policy
    if policy.scope == agents.BUCKETS:
        is_within = key.reaches_all(policy.bucket_ids)
    else:
        # A deleted source can't be retrieved, so it doesn't matter where it was.
        is_within = policy.scope == agents.SOURCES and all(
            _is_reachable(connection, key, each, if_deleted=True) for each in policy.source_ids
        )
    if is_within and agent.policy_fault is None:
        return
    raise _forbidden(f"The agent {agent.id!r} reaches further than this key; this needs a key that reaches all of it.")


def refuse_wider(connection: Connection, key: KeyRow, policy: agents.RetrievalPolicy) -> None:
    """Raise `forbidden_project_key` unless one of the key's agents may already retrieve all that the policy allows."""
    if key.models is None:
        return
    known = [agent.policy for agent in list_agents(connection, key.team_id) if is_allowed(key.models, agent.id)]
    if not any(policy.is_within(each) for each in (agents.NOTHING, *known)):
        raise _forbidden(
            "The policy retrieves more than each of the agents that this key may use; this needs a key for all agents."
        )


def _is_reachable(connection: Connection, key: KeyRow, source_id: str, *, if_deleted: bool) -> bool:
    """Return whether the key can reach the source, or `if_deleted` if the source was deleted."""
    source = find_source(connection, key.team_id, source_id)
    return if_deleted if source is None else key.reaches(source.places)


def _forbidden(message: str) -> ServiceError:
    return ServiceError(ErrorCode.FORBIDDEN_PROJECT_KEY, message, required_capability=api_keys.AGENT_MANAGE)


def plan_agent(connection: Connection, context: Context, key: KeyRow, fields: wire.AgentCreate) -> agents.TeamAgent:
    """Build the agent that a create request with these fields would store; raises that request's errors."""
    sent = fields.model_dump(exclude_unset=True)
    agent_id = fields.agent_id or context.ids.make(ids.AGENT)
    if is_model_spelling(agent_id):
        raise agents.invalid_profile(
            [("agent_id", f"{agent_id!r} is how models spell the default agent; choose another.")]
        )
    require_model(key, agent_id)
    if agent_id == DEFAULT_AGENT or store.find_agent(connection, key.team_id, agent_id):
        raise ServiceError(ErrorCode.AGENT_EXISTS, f"There is an agent {agent_id!r}.", agent_id=agent_id)
    limit, used = context.limits.agents, store.count_named_agents(connection, key.team_id)
    if limit and used >= limit:
        raise ServiceError(
            ErrorCode.AGENT_LIMIT_REACHED,
            f"The team has {used} agents; its plan allows {limit}. Delete one.",
            limit=limit,
            used=used,
            resets_at=None,
        )
    now = context.clock.timestamp()
    # If the request sets no policy, the agent may retrieve what the creator's key can reach.
    policy = agents.EVERYTHING if key.buckets is None else agents.RetrievalPolicy(bucket_ids=key.buckets)
    if key.models is not None:
        policy = agents.NOTHING
    bare = agents.TeamAgent(
        id=agent_id, team_id=key.team_id, name=agent_id, policy=policy, created_at=now, updated_at=now
    )
    planned = _changed(connection, context, key, bare, sent)
    refuse_out_of_reach(connection, key, planned)
    refuse_wider(connection, key, planned.policy)
    return planned


async def create_new_agent(context: Context, request: Creation, fields: wire.AgentCreate) -> Creation:
    """Create an agent. Raises `agent_exists`, `agent_limit_reached`, and the errors of an invalid policy.

    While the same request is in progress, raises `agent_replay_check_unavailable`.
    """

    def work(connection: Connection) -> Creation:
        agent = plan_agent(connection, context, request.key, fields)
        store.create_agent(connection, agent)
        body = view_agent(agent)
        return store_answer(connection, context, request, body)

    lock = agent_lock(request.key.id, request.idempotency_key, fields.agent_id)
    async with context.locks.hold_free(*lock) as free:
        if len(free) < len(lock):
            # This may repeat a request that is still running and hasn't stored its response yet.
            raise ServiceError(
                ErrorCode.AGENT_REPLAY_CHECK_UNAVAILABLE, agent_id=fields.agent_id, retry_after_seconds=1
            )
        async with replaying(context, request) as earlier:
            return earlier if earlier is not None else await context.write(work)


def agent_lock(key_id: str, idempotency_key: str | None, agent_id: str | None) -> list[str]:
    """Return a list with the name of the lock for creating this agent with this idempotency key.

    The list is empty if the agent's id or the idempotency key is None.
    """
    if idempotency_key is None or agent_id is None:
        return []
    return [f"agent {key_id} {idempotency_key} {agent_id}"]


async def list_visible_agents(context: Context, key: KeyRow) -> list[agents.TeamAgent]:
    """List the agents that the key may use, sorted by id, including the default agent."""
    found = await context.read_in_thread(lambda connection: store.list_agents(connection, key.team_id))
    return [agent for agent in found if is_allowed(key.models, agent.id)]


async def list_agents_as_seen(context: Context, key: KeyRow) -> list[wire.Agent]:
    """List the agents that the key may use. Their policies omit buckets and sources that the key can't reach."""
    found = await list_visible_agents(context, key)
    return await context.read_in_thread(lambda connection: [_view_for(connection, key, agent) for agent in found])


def show_agent_as_seen(context: Context, key: KeyRow, agent_id: str) -> wire.Agent:
    """Return the agent. Its policy omits buckets and sources that the key can't reach.

    Raises `model_not_allowed` and NotFound.
    """
    agent = show_agent(context, key, agent_id)
    return context.read(lambda connection: _view_for(connection, key, agent))


def show_agent(context: Context, key: KeyRow, agent_id: str) -> agents.TeamAgent:
    """Return the agent; raises `model_not_allowed` and NotFound."""
    require_model(key, agent_id)
    return context.look(lambda connection: store.get_agent(connection, key.team_id, agent_id))


async def change_agent(context: Context, key: KeyRow, agent_id: str, fields: wire.AgentFields) -> wire.Agent:
    """Update the fields that were sent, and return the agent as `show_agent_as_seen` does.

    Raises `no_updates`, `invalid_agent_profile` and `forbidden_project_key`.
    """
    sent = fields.model_dump(exclude_unset=True)
    if sent in ({}, {"policy": {}}):
        raise ServiceError(ErrorCode.NO_UPDATES, "The update names none of name, role, instructions, policy and such.")
    require_model(key, agent_id)
    now = context.clock.timestamp()

    def work(connection: Connection) -> wire.Agent:
        agent = store.get_agent(connection, key.team_id, agent_id)
        refuse_out_of_reach(connection, key, agent)
        changed = replace(
            _changed(connection, context, key, agent, sent), created_at=agent.created_at or now, updated_at=now
        )
        refuse_out_of_reach(connection, key, changed)
        refuse_wider(connection, key, changed.policy)
        store.put_agent(connection, changed)
        return _view_for(connection, key, changed)

    return await context.write(work)


async def delete_agent(context: Context, key: KeyRow, agent_id: str, *, force: bool) -> None:
    """Delete an agent other than the default agent.

    Raises `delete_blocked` if the agent is in use, unless `force` is set.
    """
    require_model(key, agent_id)
    if agent_id == DEFAULT_AGENT:
        raise refusal("agent_id", "The default agent can be changed, but not deleted.")

    def work(connection: Connection) -> None:
        agent = store.get_agent(connection, key.team_id, agent_id)
        refuse_out_of_reach(connection, key, agent)
        if agent.bound_surface is not None and not force:
            raise ServiceError(
                ErrorCode.DELETE_BLOCKED,
                f"The agent {agent_id!r} is in use: {agent.bound_surface}. force=true deletes it anyway.",
                bound_surface=agent.bound_surface,
            )
        store.delete_agent(connection, key.team_id, agent_id)

    await context.write(work)


def list_agents_of(connection: Connection, team_id: str, source_id: str) -> list[agents.TeamAgent]:
    """List the team's agents whose policy names the source."""
    return [agent for agent in store.list_agents(connection, team_id) if source_id in agent.policy.source_ids]


def replace_in_policies(connection: Connection, team_id: str, source_id: str, successor_id: str) -> None:
    """Replace a source's id by its successor's in all policies, so that agents find the successor."""
    for agent in list_agents_of(connection, team_id, source_id):
        renamed = (successor_id if each == source_id else each for each in agent.policy.source_ids)
        policy = replace(agent.policy, source_ids=tuple(dict.fromkeys(renamed)))
        store.put_agent(connection, replace(agent, policy=policy))


def view_agent(agent: agents.TeamAgent, *, policy_withheld: bool = False) -> wire.Agent:
    """Convert an agent to its API form. `policy_withheld` says that its policy is shown only in part."""
    policy = agent.policy
    return wire.Agent(
        id=agent.id,
        agent_id=agent.id,
        object="agent",
        model=model_of(agent.id),
        name=agent.name,
        role=agent.role,
        instructions=agent.instructions,
        policy=wire.Policy(
            scope=policy.scope,
            bucket_ids=list(policy.bucket_ids),
            source_ids=list(policy.source_ids),
            filters=policy.filters,
            top_k=policy.top_k,
            score_threshold=policy.score_threshold,
        ),
        policy_error=f"The stored policy {agent.policy_fault}." if agent.policy_fault else None,
        policy_withheld=policy_withheld,
        bound_surface=agent.bound_surface,
        created_at=agent.created_at,
        updated_at=agent.updated_at,
    )


def _view_for(connection: Connection, key: KeyRow, agent: agents.TeamAgent) -> wire.Agent:
    """Return the agent. Its policy omits buckets and sources that the key can't reach."""
    visible = agent.policy
    if key.is_limited:
        buckets = (each for each in visible.bucket_ids if each == agents.EVERY_BUCKET or key.reaches([each]))
        # A deleted source may have been in other buckets.
        sources = (each for each in visible.source_ids if _is_reachable(connection, key, each, if_deleted=False))
        visible = replace(visible, bucket_ids=tuple(buckets), source_ids=tuple(sources))
    return view_agent(replace(agent, policy=visible), policy_withheld=visible != agent.policy)


def _changed(
    connection: Connection, context: Context, key: KeyRow, agent: agents.TeamAgent, sent: dict[str, Any]
) -> agents.TeamAgent:
    """Return a copy of the agent with the sent fields; raises `invalid_agent_profile`."""
    policy, unknown = _with_ids(connection, key, agent.policy, sent.get("policy", {}))
    if faults := [*agents.find_faults(sent, context.limits.search_results), *unknown]:
        raise agents.invalid_profile(faults)
    texts: dict[str, Any] = {name: sent[name] for name in ("name", "role", "instructions") if name in sent}
    if "bound_surface" in sent:
        texts["bound_surface"] = sent["bound_surface"] or None
    described = replace(agent, **texts)
    return (
        replace(described, policy=agents.change_policy(agent.policy, policy), policy_fault=None)
        if policy
        else described
    )


def _with_ids(
    connection: Connection, key: KeyRow, known: agents.RetrievalPolicy, sent: dict[str, Any]
) -> tuple[dict[str, Any], list[agents.Fault]]:
    """Return the sent policy with bucket ids instead of names, and an error for each unknown name or id.

    Ids that the policy already had stay, even if their bucket or source was deleted.
    """
    found, faults = dict(sent), []
    for field, noun, get in (
        ("bucket_ids", "bucket", get_lasting_bucket),
        ("source_ids", "source", get_reachable_source),
    ):
        if field not in sent:
            continue
        kept = {*getattr(known, field), *([agents.EVERY_BUCKET] if noun == "bucket" else [])}
        ids_by_name = {
            name: name if name in kept else _find_id(partial(get, connection, key, name)) for name in sent[field]
        }
        found[field] = list(dict.fromkeys(ids_by_name.values()))
        faults += [
            (f"policy.{field}.{place}", f"there is no {noun} {name!r}.")
            for place, name in enumerate(sent[field])
            if ids_by_name[name] is None
        ]
    return found, faults


def _find_id(get: Callable[[], BucketRow | SourceRow]) -> str | None:
    with suppress(NotFound):
        return get().id
    return None
