"""The buckets, agent and mode with which an evaluation searches."""

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

    #: Slugs or ids of the buckets to search; empty means everything that the agent or the key may search.
    buckets: tuple[str, ...] = ()
    #: The agent's model id. If it is None, searches use no agent or, if `buckets` is empty too, the default agent.
    agent: str | None = None
    mode: str = "hybrid"
    k: int = 10

    @property
    def goes_by_agent(self) -> bool:
        """Whether an agent's policy applies: the named agent's, or the default agent's if no buckets are named."""
        return self.agent is not None or not self.buckets


@dataclass(frozen=True, slots=True)
class QueryHits:
    """The hits and warnings of one search."""

    hits: Sequence[Hit]
    warnings: Sequence[str]


def ask(client: Client, scope: EvalScope, golden: GoldenQuery, count: int, **changes: Any) -> QueryHits:
    """Search, and return the first `count` hits. `changes` override options of the scope; None omits an option."""
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
