"""Explains why an expected passage was not found. The possible causes are checked in this order:

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

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from svc_cli.client.api import Client
from svc_cli.errors import ApiError
from svc_cli.evals.golden import Expectation, GoldenQuery
from svc_cli.evals.scopes import DEPTH, EvalScope, ask
from svc_cli.evals.scores import Hit, find_rank, has_heading, has_text, is_source
from svc_cli.exits import Exit
from svc_daemon.wire import JsonMapping
from svc_daemon.wire.error_codes import ErrorCode

SOURCE_PREFIX = "src_"
#: Maximum number of buckets that one search can name.
MOST_BUCKETS = 200
#: Maximum characters of an expected text to search for.
PROBE_CHARACTERS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """Why one expected passage was not found."""

    code: str
    message: str


class Inquiry:
    """Finds out why expected passages were not found."""

    def __init__(self, client: Client, scope: EvalScope) -> None:
        self._client = client
        self._scope = scope
        self._buckets: Sequence[JsonMapping] | None = None

    def explain(self, golden: GoldenQuery, expectation: Expectation, deeper: Sequence[Hit]) -> Miss:
        """Return why the expected passage was not found. `deeper` contains the query's first DEPTH hits."""
        rank = find_rank(expectation, deeper)
        if rank is not None:
            return Miss(code="ranked", message=f"ranked {ordinal(rank)}")
        if expectation.source is None:
            return self._explain_unnamed(golden, expectation)
        return self._explain_named(golden, expectation, expectation.source)

    def _explain_unnamed(self, golden: GoldenQuery, expectation: Expectation) -> Miss:
        """Explain a miss if the expectation names no source: search for its heading and text."""
        words = " ".join(filter(None, (expectation.heading, expectation.text)))[:PROBE_CHARACTERS]
        probe = replace(golden, query=words, tags=(), filters=None)
        slugs = list(self._scope.buckets) or [bucket["slug"] for bucket in self._list_buckets()][:MOST_BUCKETS]
        hits = self._ask_freely(probe, slugs)
        if hits is None:
            hits = self._ask(probe)
        rank = find_rank(expectation, hits)
        if rank is None:
            what = "text" if expectation.text else "heading"
            return Miss(code=f"{what}_missing", message=f"a search for its words finds no passage with this {what}")
        hit = hits[rank - 1]
        return self._probe(golden, expectation, hit["source_id"], hit["bucket_ids"])

    def _explain_named(self, golden: GoldenQuery, expectation: Expectation, name: str) -> Miss:
        source, place = self._find_source(name)
        if source is None:
            return Miss(code="no_such_source", message=f"no source has the id, title or file name {name!r}")
        if not self._is_in_scope(place):
            message = f"it is in {', '.join(place)}, which is not searched" if place else "it is in no bucket"
            return Miss(code="out_of_scope", message=message)
        if source["status"] == "failed":
            return Miss(code="not_extracted", message=f"it failed: {(source.get('error') or {}).get('message', '')}")
        if not source["ready"]:
            return Miss(code="not_ready", message=f"it is not ready: {source['status']}")
        lacking = self._find_lack(expectation, source["id"])
        return lacking or self._probe(golden, expectation, source["id"], place)

    def _find_lack(self, expectation: Expectation, source_id: str) -> Miss | None:
        """Return what the source lacks; None if it has a passage with the expected heading and text."""
        if expectation.text is None and expectation.heading is None:
            return None
        stored = self._client.source_text(source_id)
        chunks = stored["chunks"]
        heading = expectation.heading
        under = [chunk for chunk in chunks if heading is None or has_heading(heading, chunk["location"])]
        if not under:
            return Miss(code="heading_missing", message="none of its passages is under such a heading")
        text = expectation.text
        if text is None or any(has_text(text, chunk["text"]) for chunk in under):
            return None
        if any(has_text(text, chunk["text"]) for chunk in chunks):
            return Miss(code="heading_missing", message="the text is in it under another heading")
        if has_text(text, stored["text"]):
            return Miss(code="text_cut", message="the text is in it, cut across two passages")
        return Miss(code="text_missing", message="the text is in none of its passages")

    def _probe(self, golden: GoldenQuery, expectation: Expectation, source_id: str, place: Sequence[str]) -> Miss:
        """Search in this source only, with fewer and fewer restrictions, until the passage is found."""
        if find_rank(expectation, self._ask(golden, source_ids=[source_id])):
            return Miss(code="ranked_below", message=f"ranked below the {ordinal(DEPTH)}")
        bare = replace(golden, tags=(), filters=None)
        if bare != golden and find_rank(expectation, self._ask(bare, source_ids=[source_id])):
            return Miss(code="filtered", message="left out by the query's tags or filters")
        if not self._scope.goes_by_agent:
            return Miss(code="no_match", message="nothing in it matches the query")
        hits = self._ask_freely(bare, place, source_ids=[source_id])
        if hits is None:
            return Miss(code="no_match", message="nothing in the parts that the agent searches matches the query")
        if find_rank(expectation, hits):
            return Miss(code="policy", message="left out by the agent's policy: its scope, filters or threshold")
        return Miss(code="no_match", message="nothing in it matches the query")

    def _ask(self, golden: GoldenQuery, **changes: Any) -> Sequence[Hit]:
        """Search, and return as many hits as the API allows."""
        return ask(self._client, self._scope, golden, DEPTH, **changes).hits

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
