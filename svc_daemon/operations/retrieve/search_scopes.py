"""Determines what a search covers, and by which agent's policy."""

from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from svc_daemon.core import readiness
from svc_daemon.core.access.model_ids import DEFAULT_AGENT, agent_of
from svc_daemon.core.search.agents import BUCKETS, EVERY_BUCKET, SOURCES, RetrievalPolicy, TeamAgent
from svc_daemon.core.search.filters import KINDS, having, list_compared
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import ServiceError
from svc_daemon.operations.retrieve.availability import refuse_disabled, refuse_in_maintenance
from svc_daemon.operations.shared.authorization import require_model
from svc_daemon.operations.shared.reachable_rows import get_usable_bucket
from svc_daemon.process.contexts import Context
from svc_daemon.store.rows.agents import get_agent
from svc_daemon.store.rows.buckets import list_buckets, list_revisions
from svc_daemon.store.rows.keys import KeyRow
from svc_daemon.store.rows.sources.search_candidates import Wanted, list_candidates
from svc_daemon.wire.light.error_codes import ErrorCode
from svc_daemon.wire.searches import SearchRequest

#: Of how many compared attributes a search looks for the reason why it found nothing, and how much of a name is shown.
MOST_PROBED, SHOWN_CHARACTERS = 5, 60


@dataclass(frozen=True, slots=True)
class SearchScope:
    """What a search covers: some buckets, and all or some of the sources in them."""

    #: Whether the search is limited to certain buckets. It then finds no Q&A (see `core.readiness.is_found_by_bucket`).
    goes_by_bucket: bool
    #: Whether sources in no bucket are found too.
    takes_unplaced: bool
    #: Slugs of the buckets that the request names but the agent does not search.
    left_out: tuple[str, ...]
    #: The revision of each searched bucket, by id. A revision increases with each change of the bucket's sources.
    revisions: dict[str, int]
    source_ids: tuple[str, ...] | None
    #: Id of the last rebuild of the index. If the id changes, the index was replaced.
    rebuild_id: str | None

    @property
    def warnings(self) -> list[str]:
        return [f"The agent does not search the bucket {bucket!r}; it was left out." for bucket in self.left_out]

    @property
    def has_bucket(self) -> bool:
        """Return whether the request and the key allow at least one bucket, even if the policy excludes it."""
        return bool(self.revisions or self.left_out)

    @property
    def bucket_ids(self) -> tuple[str, ...]:
        return tuple(self.revisions)


def warn_of_agent(agent: TeamAgent | None, scope: SearchScope) -> list[str]:
    """Return warnings if the agent can't find anything, without revealing its policy."""
    if agent is None:
        return []
    if agent.policy_fault is not None:
        return [f"The agent {agent.id!r} finds nothing: its stored policy is broken. {_remedy(agent)}"]
    if agent.policy.is_empty:
        return [f"The agent {agent.id!r} finds nothing: its policy names no {agent.policy.scope}. {_remedy(agent)}"]
    if agent.policy.scope == BUCKETS and EVERY_BUCKET not in agent.policy.bucket_ids and not scope.has_bucket:
        warning = (
            f"The agent {agent.id!r} finds nothing: its buckets were deleted or archived, or this key reaches none."
        )
        return [f"{warning} {_remedy(agent)}"]
    return []


def _remedy(agent: TeamAgent) -> str:
    return f"`svc agent set {agent.id}` with --bucket, --source or --scope sets a new policy."


def choose_agent(context: Context, key: KeyRow, request: SearchRequest) -> TeamAgent | None:
    """Return the agent that the request names.

    If the request names no agent, returns the default agent, or None if the request names buckets.
    """
    if request.agent is None and request.buckets is not None:
        if key.models is not None:
            # A key limited to some agents must name one of them.
            raise ServiceError(ErrorCode.MODEL_NOT_ALLOWED, "This key is limited to certain agents; name one of them.")
        return None
    agent_id = DEFAULT_AGENT if request.agent is None else agent_of(request.agent)
    require_model(key, agent_id)
    return context.look(lambda connection: get_agent(connection, key.team_id, agent_id))


def narrow(context: Context, request: SearchRequest, policy: RetrievalPolicy) -> SearchRequest:
    """Return the request with the policy's filters and limits; raises `metadata_filter_too_large`."""
    changed: dict[str, Any] = {}
    if policy.scope == SOURCES:
        if len(policy.source_ids) > context.limits.search_sources:
            raise ServiceError(
                ErrorCode.METADATA_FILTER_TOO_LARGE,
                f"The agent searches {len(policy.source_ids)} sources by their ids; give it a bucket instead.",
                max_source_ids=context.limits.search_sources,
            )
        named = request.source_ids
        changed["source_ids"] = [each for each in policy.source_ids if named is None or each in named]
    if policy.filters is not None:
        filters = [policy.filters, request.filters] if request.filters else [policy.filters]
        changed["filters"] = {"type": "and", "filters": filters}
    if policy.top_k is not None and "max_num_results" not in request.model_fields_set:
        changed["max_num_results"] = min(policy.top_k, context.limits.search_results)
    if policy.score_threshold is not None:
        changed["score_threshold"] = max(policy.score_threshold, request.score_threshold or 0.0)
    return request.model_copy(update=changed)


def warn_of_absent(
    connection: Connection, context: Context, key: KeyRow, request: SearchRequest, policy: RetrievalPolicy
) -> list[str]:
    """Return a warning for each attribute that the request's filters compare and that nothing in its scope has so.

    Raises the errors of `find_scope`.
    """

    def is_there(name: str, kind: str) -> bool:
        having_it = narrow(context, request.model_copy(update={"filters": having(name, kind)}), policy)
        return bool(find_scope(connection, context, key, having_it, policy, is_one_enough=True).source_ids)

    warnings: list[str] = []
    if not is_there("type", "text"):
        # Every source has a type: the scope is empty.
        return warnings
    for name, kind in islice(list_compared(request.filters or {"filters": ()}), MOST_PROBED):
        if is_there(name, kind):
            continue
        others = [other for other in KINDS if other != kind and is_there(name, other)]
        found = f"what is searched has it as a {' or '.join(others)}, never as a {kind}"
        reason = found if others else "nothing that is searched has it"
        warnings.append(f"`filters` compares {name[:SHOWN_CHARACTERS]!r} with a {kind}: {reason}.")
    return warnings


def find_scope(
    connection: Connection,
    context: Context,
    key: KeyRow,
    request: SearchRequest,
    policy: RetrievalPolicy,
    *,
    is_one_enough: bool = False,
) -> SearchScope:
    """Return what the search covers, of its sources one if that is enough.

    Raises `search_disabled`, `bucket_not_found`, `team_store_maintenance`.
    """
    refuse_disabled(connection)
    if request.buckets is not None:
        buckets = [get_usable_bucket(connection, key, bucket) for bucket in request.buckets]
    else:
        active = list_buckets(connection, key.team_id, (readiness.ACTIVE,))
        buckets = [bucket for bucket in active if key.reaches([bucket.id])]
    left_out = (bucket.slug for bucket in buckets if request.buckets and not policy.covers(bucket.id))
    scope = SearchScope(
        goes_by_bucket=policy.goes_by_bucket or request.buckets is not None,
        takes_unplaced=not policy.goes_by_bucket and request.buckets is None and not key.is_limited,
        left_out=tuple(dict.fromkeys(left_out)),
        revisions=list_revisions(connection, [bucket.id for bucket in buckets if policy.covers(bucket.id)]),
        source_ids=None if request.source_ids is None else tuple(request.source_ids),
        rebuild_id=refuse_in_maintenance(connection, context, key.team_id),
    )
    # Without filters and tags, the index needs no list of sources.
    if request.filters is None and not request.tags and (scope.goes_by_bucket or not key.is_limited):
        return scope
    # Listing too many sources does no harm, because each hit is checked again after the search.
    wanted = Wanted(
        bucket_ids=None if scope.takes_unplaced else scope.bucket_ids,
        source_ids=request.source_ids,
        tags=request.tags,
        filters=request.filters,
        is_one_enough=is_one_enough,
    )
    return replace(scope, source_ids=tuple(list_candidates(connection, key.team_id, wanted)))
