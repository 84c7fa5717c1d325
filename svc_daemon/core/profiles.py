"""An agent's profile as people send it: what is new about it, and what is wrong with it.

Of a policy, what is not sent stays, so that a change of one field widens nothing by leaving out the others. Buckets or
sources that are sent choose the scope where that isn't sent; what the scope doesn't go by is dropped.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from svc_daemon.core.agents import BUCKETS, SOURCES, Policy
from svc_daemon.core.filters import check_filter
from svc_daemon.errors import ServiceError
from svc_daemon.wire.codes import ErrorCode

#: What each scope goes by.
_LISTS = {BUCKETS: "bucket_ids", SOURCES: "source_ids"}

#: A path and a message.
Fault = tuple[str, str]


def invalid_profile(faults: list[Fault]) -> ServiceError:
    """A 400 `invalid_agent_profile` about several fields; at least one."""
    path, message = faults[0]
    told = f"{path}: {message}" if len(faults) == 1 else f"{len(faults)} fields of the agent are not valid."
    listed = [{"path": path, "message": message} for path, message in faults]
    return ServiceError(ErrorCode.INVALID_AGENT_PROFILE, told, errors=listed)


def find_faults(sent: Mapping[str, Any], most_results: int) -> Iterator[Fault]:
    """What is wrong with fields that fit their types; a search gives `most_results` at most."""
    for field in ("name", "bound_surface"):
        if not sent.get(field, "").isprintable():
            yield field, "has no control characters."
    if "name" in sent and not sent["name"].strip():
        yield "name", "must not be blank."
    top_k = sent.get("policy", {}).get("top_k")
    if top_k is not None and top_k > most_results:
        yield "policy.top_k", f"must be 1 to {most_results}, not {top_k}."
    if filters := sent.get("policy", {}).get("filters"):
        try:
            check_filter(filters, "policy.filters")
        except ServiceError as error:
            yield from ((each["path"], each["message"]) for each in error.details["errors"])


def change_policy(policy: Policy, sent: Mapping[str, Any]) -> Policy:
    """The policy with what was sent, its ids found; raises `invalid_agent_profile` where that contradicts itself."""
    scope = _scope(policy, sent)
    if faults := list(_misplaced(policy, scope, sent)):
        raise invalid_profile(faults)
    changed: dict[str, Any] = {name: sent[name] for name in ("top_k", "score_threshold") if name in sent}
    for other, field in _LISTS.items():
        changed[field] = tuple(sent.get(field, getattr(policy, field))) if other == scope else ()
    if "filters" in sent:
        changed["filters"] = sent["filters"] or None
    return replace(policy, scope=scope, **changed)


def _scope(policy: Policy, sent: Mapping[str, Any]) -> str:
    if "scope" in sent:
        return str(sent["scope"])
    chosen = [scope for scope, field in _LISTS.items() if sent.get(field)] or [
        scope for scope, field in _LISTS.items() if field in sent
    ]
    return chosen[0] if chosen else policy.scope


def _misplaced(policy: Policy, scope: str, sent: Mapping[str, Any]) -> Iterator[Fault]:
    for other, field in _LISTS.items():
        if other != scope and sent.get(field):
            yield f"policy.{field}", f"counts with the scope {other!r} only, and the scope is {scope!r}."
    own = _LISTS.get(scope)
    if own is not None and own not in sent and scope != policy.scope:
        yield f"policy.{own}", f"must be sent: the scope {scope!r} goes by it."
