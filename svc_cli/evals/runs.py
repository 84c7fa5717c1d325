"""Searches for every query of an evaluation, scores the results, and explains what was not found."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from svc_cli.client.api import Client
from svc_cli.errors import ApiError
from svc_cli.evals.golden import Expectation, GoldenQuery
from svc_cli.evals.metrics import mean
from svc_cli.evals.misses import Inquiry, Miss
from svc_cli.evals.scopes import DEPTH, EvalScope, ask
from svc_cli.evals.scores import Scores, find_rank, score_ranks
from svc_daemon.wire.error_codes import ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectationResult:
    """The result for one expected passage."""

    expectation: Expectation
    #: The rank at which the passage was found, from 1; None if the passage is not among the first k hits.
    rank: int | None
    #: Why the passage was not found; None if it was found.
    miss: Miss | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryResult:
    """The result of one query."""

    golden: GoldenQuery
    verdicts: tuple[ExpectationResult, ...]
    scores: Scores
    duration_s: float

    @property
    def is_found(self) -> bool:
        """Whether every expected passage is among the first k hits."""
        return all(verdict.miss is None for verdict in self.verdicts)

    @property
    def first_rank(self) -> int | None:
        return min((verdict.rank for verdict in self.verdicts if verdict.rank is not None), default=None)


@dataclass(slots=True)
class Evaluation:
    """The results of all queries."""

    scope: EvalScope
    results: list[QueryResult] = field(default_factory=list)
    #: The warnings of the searches, as keys, so that each is kept once.
    warnings: dict[str, None] = field(default_factory=dict)

    @property
    def scores(self) -> Scores:
        """Return the mean scores over all queries."""
        each = [result.scores for result in self.results]
        return Scores(
            recall=mean([scores.recall for scores in each]),
            mrr=mean([scores.mrr for scores in each]),
            ndcg=mean([scores.ndcg for scores in each]),
        )


def evaluate(
    client: Client, scope: EvalScope, queries: Sequence[GoldenQuery], on_result: Callable[[QueryResult], None]
) -> Evaluation:
    """Run every query and score its results. Raises the errors of a search."""
    evaluation = Evaluation(scope)
    inquiry = Inquiry(client, scope)
    for golden in queries:
        began_s = time.monotonic()
        try:
            answer = ask(client, scope, golden, scope.k)
        except ApiError as error:
            if error.code == ErrorCode.INVALID_REQUEST:  # name the query, whose filters are the usual cause
                error.message = f"query {golden.name!r}: {error.message}"
            raise
        duration_s = time.monotonic() - began_s
        evaluation.warnings.update(dict.fromkeys(answer.warnings))
        ranks = [find_rank(expectation, answer.hits) for expectation in golden.expected]
        deeper = ask(client, scope, golden, DEPTH).hits if None in ranks else ()
        verdicts = tuple(
            ExpectationResult(
                expectation=expectation,
                rank=rank,
                miss=inquiry.explain(golden, expectation, deeper) if rank is None else None,
            )
            for expectation, rank in zip(golden.expected, ranks, strict=True)
        )
        scores = score_ranks(ranks, scope.k)
        result = QueryResult(golden=golden, verdicts=verdicts, scores=scores, duration_s=duration_s)
        evaluation.results.append(result)
        on_result(result)
    return evaluation
