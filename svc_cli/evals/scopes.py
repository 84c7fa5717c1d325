"""Where an evaluation searches, and how."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from svc_cli.client.api import Client
from svc_cli.evals.golden import GoldenQuery
from svc_cli.evals.judgments import Hit

#: The most hits that the API returns.
DEPTH = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalScope:
    """Where every query is searched."""

    #: Slugs or ids; empty means everything that the agent or the key may search.
    buckets: tuple[str, ...] = ()
    #: A model id.
    agent: str | None = None
    mode: str = "hybrid"
    k: int = 10

    @property
    def goes_by_agent(self) -> bool:
        """Whether an agent's policy applies: the named one's, or the default's without agent and buckets."""
        return self.agent is not None or not self.buckets


@dataclass(frozen=True, slots=True)
class QueryHits:
    """The hits and warnings of one search."""

    hits: Sequence[Hit]
    warnings: Sequence[str]


def ask(client: Client, scope: EvalScope, golden: GoldenQuery, count: int, **changes: Any) -> QueryHits:
    """The first `count` hits. `changes` are options of the search in place of the scope's; None leaves one out."""
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
