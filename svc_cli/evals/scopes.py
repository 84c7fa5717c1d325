"""The buckets, agent and options that all searches of an evaluation use."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from svc_cli.client.api import Client
from svc_cli.evals.golden import GoldenQuery
from svc_cli.evals.scores import Hit

#: Maximum number of hits that the API returns for a search.
DEPTH = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalScope:
    """The search options that all queries share."""

    #: Slugs or ids of the buckets to search; empty means all.
    buckets: tuple[str, ...] = ()
    #: The model id of the agent to search with. If None, the default agent is used, unless `buckets` are named.
    agent: str | None = None
    mode: str = "hybrid"
    k: int = 10

    @property
    def goes_by_agent(self) -> bool:
        """Whether searches use an agent: a named one, or the default agent if no buckets are named."""
        return self.agent is not None or not self.buckets


@dataclass(frozen=True, slots=True)
class QueryHits:
    """The hits and warnings of one search."""

    hits: Sequence[Hit]
    warnings: Sequence[str]


def ask(client: Client, scope: EvalScope, golden: GoldenQuery, count: int, **changes: Any) -> QueryHits:
    """Search, and return the first `count` hits. `changes` override options; an option that is None is omitted."""
    options: dict[str, Any] = {
        "buckets": list(scope.buckets) or None,
        "agent": scope.agent,
        "mode": scope.mode,
        "tags": list(golden.tags) or None,
        "filters": golden.filters,
        "max_num_results": count,
        **changes,
    }
    page = client.search(golden.query, **{name: value for name, value in options.items() if value is not None})
    return QueryHits(page["data"], page.get("warnings") or ())
