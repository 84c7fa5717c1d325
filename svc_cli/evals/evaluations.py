"""Runs the queries of `svc eval`: scores what they find, and explains what they miss.

The causes of a miss are checked in this order:

ranked              the passage was found, but ranked below the first k
no_such_source      no source has the expected id, title or file name
out_of_scope        the source is in no bucket that is searched
not_extracted       indexing the source failed
not_ready           the source is still being indexed, or not in the bucket yet
heading_missing     no passage of the source is under this heading, or the text is under another heading
text_cut            the source contains the text, but no single passage does
text_missing        the source does not contain the text
ranked_below        the query matches the passage, but too many hits rank above the passage
filtered            the query's tags or filters exclude the passage
policy              the agent's policy excludes the passage by its scope, filters or threshold
no_match            the query does not match the passage
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from svc_cli.client.api import Client
from svc_cli.errors import ApiError, whole_error
from svc_cli.evals.golden import Expectation, GoldenQuery, Hit, is_source
from svc_cli.exits import Exit
from svc_daemon.wire import Json, JsonMapping
from svc_daemon.wire.light.error_codes import ErrorCode

#: Maximum number of hits that the API returns for a search.
DEPTH = 50
SOURCE_PREFIX = "src_"
#: Maximum number of buckets that one search can name.
MOST_BUCKETS = 200
#: Maximum characters of an expected text to search for.
PROBE_CHARACTERS = 300


def score_ranks(ranks: Sequence[int | None], k: int) -> dict[str, float]:
    """Compute the scores from the rank of each expected passage; a rank is None if the passage was not found.

    Several expected passages can have the same rank, because one hit can match all of them.
    """
    at = Counter(rank for rank in ranks if rank is not None and rank <= k)
    # The ideal ranking: the hits that meet expectations, plus one hit for each expectation that was not found.
    ideal = [*at.values(), *[1] * (len(ranks) - sum(at.values()))]
    return {
        "recall": sum(at.values()) / len(ranks),
        "mrr": 1 / min(at) if at else 0.0,
        "ndcg": ndcg([at[rank] for rank in range(1, k + 1)], ideal, k),
    }


def ndcg(order: Sequence[int], ideal: Sequence[int], k: int) -> float:
    """Return the nDCG of the first k results, from 0 to 1.

    `order` has the relevance of each result in ranking order (0 means not expected), `ideal` that of everything that
    was expected.
    """

    def gain(relevances: Sequence[int]) -> float:
        return math.fsum(relevance / math.log2(rank + 1) for rank, relevance in enumerate(relevances, start=1))

    best = gain(sorted(ideal, reverse=True)[:k])
    return gain(order[:k]) / best if best else 0.0


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

    def search(self, client: Client, golden: GoldenQuery, count: int, **changes: Any) -> JsonMapping:
        """Search for the first `count` hits. `changes` override options; an option that is None is omitted."""
        options: dict[str, Any] = {
            "buckets": list(self.buckets) or None,
            "agent": self.agent,
            "mode": self.mode,
            "tags": list(golden.tags) or None,
            "filters": golden.filters,
            "max_num_results": count,
            **changes,
        }
        return client.search(golden.query, **{name: value for name, value in options.items() if value is not None})


def evaluate(
    client: Client, scope: EvalScope, queries: Sequence[GoldenQuery], on_item: Callable[[Json], None]
) -> tuple[list[Json], list[str]]:
    """Run every query; return the result of each, and the warnings of the searches. Raises the errors of a search."""
    items: list[Json] = []
    warnings: dict[str, None] = {}
    inquiry = Inquiry(client, scope)
    for golden in queries:
        began_s = time.monotonic()
        try:
            answer = scope.search(client, golden, scope.k)
        except ApiError as error:
            if error.code == ErrorCode.INVALID_REQUEST:  # name the query, whose filters are the usual cause
                error.message = f"query {golden.name!r}: {error.message}"
            raise
        duration_ms = round(1000 * (time.monotonic() - began_s))
        warnings |= dict.fromkeys(answer.get("warnings") or ())
        ranks = [expectation.find_rank(answer["data"]) for expectation in golden.expected]
        deeper = scope.search(client, golden, DEPTH)["data"] if None in ranks else ()
        expected: list[Json] = []
        for expectation, rank in zip(golden.expected, ranks, strict=True):
            reason = inquiry.explain(golden, expectation, deeper) if rank is None else None
            expected.append({**asdict(expectation), "rank": rank, "reason": reason})
        item: Json = {
            "name": golden.name,
            "query": golden.query,
            "found": None not in ranks,
            "rank": min((rank for rank in ranks if rank is not None), default=None),
            "metrics": _round(score_ranks(ranks, scope.k)),
            "expected": expected,
            "duration_ms": duration_ms,
        }
        items.append(item)
        on_item(item)
    return items, list(warnings)


def summarize(scope: EvalScope, items: Sequence[Json], warnings: Sequence[str], least: Mapping[str, float]) -> Json:
    """Return the mean scores, the results, and whether they are good enough.

    `least` has the minimum of each mean score. If it is empty, every passage must be found.
    """
    each = [score_ranks([expected["rank"] for expected in item["expected"]], scope.k) for item in items]
    means = {name: math.fsum(scores[name] for scores in each) / len(each) for name in each[0]}
    thresholds = [
        # Tolerate rounding errors.
        {"metric": name, "least": value, "reached": means[name], "passed": means[name] >= value - 1e-9}
        for name, value in least.items()
    ]
    missed, failed = [item["name"] for item in items if not item["found"]], describe_failed(thresholds)
    is_passed = not (failed if thresholds else missed)
    summary: Json = {
        "v": 1,
        "type": "eval.summary",
        "buckets": list(scope.buckets),
        "agent": scope.agent,
        "mode": scope.mode,
        "k": scope.k,
        "metrics": _round(means),
        "thresholds": thresholds,
        "counts": {"queries": len(items), "found": len(items) - len(missed), "missed": len(missed)},
        "items": list(items),
        "warnings": list(warnings),
        "duration_ms": sum(item["duration_ms"] for item in items),
        "exit_code": int(Exit.DONE if is_passed else Exit.FAILED),
    }
    if not is_passed:
        message = ", ".join(failed) or f"{len(missed)} of {len(items)} queries miss what they should find"
        error = {"code": "svc_eval_failed", "message": f"{message}.", "details": {"missed": missed}}
        summary["error"] = whole_error(error)
    return summary


def describe_failed(thresholds: Sequence[JsonMapping]) -> list[str]:
    """Describe each minimum that was not reached."""
    failed = [each for each in thresholds if not each["passed"]]
    return [f"{each['metric']} is {each['reached']:.3f} and should be {each['least']:g}" for each in failed]


def _round(scores: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 6) for name, value in scores.items()}


class Inquiry:
    """Finds out why expected passages were not found."""

    def __init__(self, client: Client, scope: EvalScope) -> None:
        self._client = client
        self._scope = scope
        self._buckets: Sequence[JsonMapping] | None = None

    def explain(self, golden: GoldenQuery, expectation: Expectation, deeper: Sequence[Hit]) -> Json:
        """Return why the expected passage was not found. `deeper` contains the query's first DEPTH hits."""
        rank = expectation.find_rank(deeper)
        if rank is not None:
            return {"code": "ranked", "message": f"ranked {ordinal(rank)}"}
        if expectation.source is None:
            return self._explain_unnamed(golden, expectation)
        return self._explain_named(golden, expectation, expectation.source)

    def _explain_unnamed(self, golden: GoldenQuery, expectation: Expectation) -> Json:
        """Explain a miss if the expectation names no source: search for its heading and text."""
        words = " ".join(filter(None, (expectation.heading, expectation.text)))[:PROBE_CHARACTERS]
        probe = replace(golden, query=words, tags=(), filters=None)
        slugs = list(self._scope.buckets) or [bucket["slug"] for bucket in self._list_buckets()][:MOST_BUCKETS]
        hits = self._ask_freely(probe, slugs)
        if hits is None:
            hits = self._ask(probe)
        rank = expectation.find_rank(hits)
        if rank is None:
            what = "text" if expectation.text else "heading"
            return {"code": f"{what}_missing", "message": f"a search for its words finds no passage with this {what}"}
        hit = hits[rank - 1]
        return self._probe(golden, expectation, hit["source_id"], hit["bucket_ids"])

    def _explain_named(self, golden: GoldenQuery, expectation: Expectation, name: str) -> Json:
        source, place = self._find_source(name)
        if source is None:
            return {"code": "no_such_source", "message": f"no source has the id, title or file name {name!r}"}
        if not self._is_in_scope(place):
            message = f"it is in {', '.join(place)}, which is not searched" if place else "it is in no bucket"
            return {"code": "out_of_scope", "message": message}
        if source["status"] == "failed":
            return {"code": "not_extracted", "message": f"it failed: {(source.get('error') or {}).get('message', '')}"}
        if not source["ready"]:
            return {"code": "not_ready", "message": f"it is not ready: {source['status']}"}
        lacking = self._find_lack(expectation, source["id"])
        return lacking or self._probe(golden, expectation, source["id"], place)

    def _find_lack(self, expectation: Expectation, source_id: str) -> Json | None:
        """Return what the source lacks; None if it has a passage with the expected heading and text."""
        if expectation.text is None and expectation.heading is None:
            return None
        stored = self._client.source_text(source_id)
        chunks = stored["chunks"]
        under = [chunk for chunk in chunks if expectation.has_heading(chunk["location"])]
        if not under:
            return {"code": "heading_missing", "message": "none of its passages is under such a heading"}
        if any(expectation.has_text(chunk["text"]) for chunk in under):
            return None
        if any(expectation.has_text(chunk["text"]) for chunk in chunks):
            return {"code": "heading_missing", "message": "the text is in it under another heading"}
        if expectation.has_text(stored["text"]):
            return {"code": "text_cut", "message": "the text is in it, cut across two passages"}
        return {"code": "text_missing", "message": "the text is in none of its passages"}

    def _probe(self, golden: GoldenQuery, expectation: Expectation, source_id: str, place: Sequence[str]) -> Json:
        """Search in this source only, with fewer and fewer restrictions, until the passage is found."""
        if expectation.find_rank(self._ask(golden, source_ids=[source_id])):
            return {"code": "ranked_below", "message": f"ranked below the {ordinal(DEPTH)}"}
        bare = replace(golden, tags=(), filters=None)
        if bare != golden and expectation.find_rank(self._ask(bare, source_ids=[source_id])):
            return {"code": "filtered", "message": "left out by the query's tags or filters"}
        if not self._scope.goes_by_agent:
            return {"code": "no_match", "message": "nothing in it matches the query"}
        hits = self._ask_freely(bare, place, source_ids=[source_id])
        if hits is None:
            return {"code": "no_match", "message": "nothing in the parts that the agent searches matches the query"}
        if expectation.find_rank(hits):
            return {"code": "policy", "message": "left out by the agent's policy: its scope, filters or threshold"}
        return {"code": "no_match", "message": "nothing in it matches the query"}

    def _ask(self, golden: GoldenQuery, **changes: Any) -> Sequence[Hit]:
        """Search, and return as many hits as the API allows."""
        hits: Sequence[Hit] = self._scope.search(self._client, golden, DEPTH, **changes)["data"]
        return hits

    def _ask_freely(self, golden: GoldenQuery, buckets: Sequence[str], **changes: Any) -> Sequence[Hit] | None:
        """Like `_ask`, but without an agent. Returns None if the key can search only through agents."""
        try:
            return self._ask(golden, agent=None, buckets=list(buckets), **changes)
        except ApiError as error:
            if error.code != ErrorCode.MODEL_NOT_ALLOWED:
                raise
            return None

    def _find_source(self, name: str) -> tuple[JsonMapping | None, list[str]]:
        """Return the source with this id, title or file name, and its buckets' slugs; (None, []) if there is none.

        If there are several, one that is searched and ready is preferred.
        """
        if name.startswith(SOURCE_PREFIX):
            try:
                source = self._client.source(name)
            except ApiError as error:
                if error.exit is not Exit.MISSING:
                    raise
                return None, []
            return source, [each["slug"] for each in self._list_buckets() if each["id"] in source["bucket_ids"]]
        ordered = sorted(self._list_buckets(), key=lambda bucket: not self._is_in_scope([bucket["slug"]]))
        for bucket in ordered:
            members = self._client.sources(bucket["id"], status="all", q=name)
            named = [member for member in members if is_source(name, member)]
            if named:
                return max(named, key=lambda member: bool(member["ready"])), [bucket["slug"]]
        return None, []

    def _is_in_scope(self, slugs: Sequence[str]) -> bool:
        """Whether one of these buckets is searched. If the scope names no buckets, all buckets are searched."""
        named = set(self._scope.buckets)
        ids = {bucket["id"] for bucket in self._list_buckets() if bucket["slug"] in slugs}
        return bool(slugs) if not named else bool(named & {*slugs, *ids})

    def _list_buckets(self) -> Sequence[JsonMapping]:
        if self._buckets is None:
            self._buckets = self._client.buckets(members=False)["buckets"]
        return self._buckets


def ordinal(number: int) -> str:
    """Format an ordinal number, such as `1st`, `2nd` or `14th`."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
