"""Keyword, semantic and hybrid search, and the hits built from the chosen chunks.

Some SQL statements return a list as one JSON text, because for each row, Python may have to wait for its global lock.
"""

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import tantivy

from svc_daemon.core.search.naming import DECIDES, choose_named, names_of, rate_names
from svc_daemon.core.search.ranking import POOL, coverage
from svc_daemon.core.text.places import Place, PlaceFinder
from svc_daemon.core.text.queries import ParsedQuery, parse_query
from svc_daemon.core.text.terms import QueryWord, suggest
from svc_daemon.provider import ranked_chunks
from svc_daemon.provider.contract import (
    Hit,
    HitPage,
    Part,
    SearchMode,
    SearchQuery,
    Suggestion,
    TermMatch,
    VectorCount,
    chunk_id,
)
from svc_daemon.provider.embedded import documents
from svc_daemon.provider.embedded.documents import Counts
from svc_daemon.provider.embedded.embeddings import count_missing
from svc_daemon.provider.embedded.indexes import TeamIndex
from svc_daemon.provider.embedded.matching import Matcher, Scope
from svc_daemon.provider.embedded.packing import unpack_names
from svc_daemon.provider.embedded.schema import MAX_ORDINAL, ORDINAL_BITS
from svc_daemon.provider.embedded.semantics import Meaning, SignsCache, find_meaning
from svc_daemon.provider.ranked_chunks import (
    CANDIDATES,
    PARTS,
    Placed,
    distinct,
    fuse_placed,
    list_warnings,
    merge_spans,
    put_first,
    score_hit,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A query split into words, with the statistics for ranking."""

    mode: SearchMode
    words: Sequence[QueryWord]
    #: Finds these words in texts.
    finder: PlaceFinder
    #: Inverse document frequency of each word, by its text.
    weights: Mapping[str, float]
    #: The query's vector and access to the index's vectors; None if they can't be compared.
    meaning: Meaning | None
    explain: bool


def read_hits(
    connection: sqlite3.Connection, question: Question, order: Sequence[Placed[int]], offset: int
) -> Iterator[Hit]:
    """Yield the hits of a page, after `offset` skipped hits."""
    keys = [placed.key for placed in order]
    rows = _chunk_rows(connection, keys)
    buckets = documents.list_buckets_of_all(connection, {key >> ORDINAL_BITS for key in keys})
    # Hits that only the keyword search found have no cosine yet.
    meaning, others = question.meaning, [placed.key for placed in order if placed.semantic is None]
    cosines = meaning.measure(connection, others) if meaning is not None and others else {}
    for rank, placed in enumerate(order, start=offset + 1):
        key, row = placed.key, rows[placed.key]
        semantic = meaning.match(None, cosines[key]) if meaning is not None and key in cosines else placed.semantic
        places = _find_places(row, question)
        matches = tuple(
            TermMatch(
                term=word.text,
                idf=question.weights[word.text],
                parts=tuple(part for part in PARTS if places[part][number]) if question.explain else (),
            )
            for number, word in enumerate(question.words)
            if any(found[number] for found in places.values())
        )
        covered = coverage(question.weights, {match.term for match in matches})
        yield Hit(
            chunk_id=chunk_id(row["source_id"], row["generation"], key & MAX_ORDINAL),
            source_id=row["source_id"],
            generation=row["generation"],
            bucket_ids=buckets.get(key >> ORDINAL_BITS, ()),
            chunk=documents.chunk_from_row(row),
            score=score_hit(question.mode, covered, semantic),
            rank=rank,
            matches=matches,
            highlights=merge_spans(span for found in places["text"] for span in found),
            coverage=covered,
            keyword=placed.keyword,
            semantic=semantic,
            fused=placed.fused,
            is_named=placed.is_named,
        )


def _find_places(row: sqlite3.Row, question: Question) -> dict[Part, list[list[Place]]]:
    """Find the words in the parts of a chunk. Where all are in its text, and nothing is to be explained, only there."""
    language, find = row["language"] or "", question.finder.find
    places: dict[Part, list[list[Place]]] = {"text": find(row["text"], language)}
    if question.explain or not all(places["text"]):
        own = unpack_names(row["names"])
        titles = dict.fromkeys((row["title"], *own, *names_of(row["title"], own[0] if own else "")))
        places["title"] = find("\n".join(titles), language)
        places["headings"] = find("\n".join(unpack_names(row["headings"])), language)
    return places


def _chunk_rows(connection: sqlite3.Connection, keys: Sequence[int]) -> dict[int, sqlite3.Row]:
    rows = connection.execute(
        """
        SELECT c.*, d.source_id, d.generation, d.title, d.names, d.language FROM chunks AS c
        JOIN documents AS d ON d.document_key = c.chunk_key >> :ordinal_bits
        WHERE c.chunk_key IN (SELECT value FROM json_each(:keys))
        """,
        {"keys": json.dumps(keys), "ordinal_bits": ORDINAL_BITS},
    )
    return {row["chunk_key"]: row for row in rows}


#: Size of SQLite's page cache per connection, in KiB. A larger cache would help little.
CACHE_KIB = 12_000
#: How many chunks of the documents that the query names come first.
NAMED_FIRST = 3
#: In how many chunks a suggestion is looked for.
NEAR = 20


class Overtaken(Exception):
    """A document was replaced while the search began, which must begin again."""


def search(
    connection: sqlite3.Connection, index: TeamIndex, cache: SignsCache, query: SearchQuery, check: Callable[[], None]
) -> HitPage:
    """Search and read one page of hits, in this connection's transaction.

    `check` may raise SearchTimeout. Raises Overtaken, or IndexBuilding.
    """
    connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    counts, searcher = _look(connection, index)
    languages = counts.list_languages(connection)
    parsed = parse_query(query.text, languages)
    mode = query.mode if query.vector is not None else SearchMode.KEYWORD
    if any(ids is not None and not ids for ids in (query.bucket_ids, query.source_ids)):
        return HitPage(mode=mode)
    check()
    matcher = Matcher(searcher, parsed, languages, counts.chunks, query.counted_in)
    asked = _Asked(
        connection=connection,
        counts=counts,
        query=query,
        parsed=parsed,
        matcher=matcher,
        meaning=None if mode is SearchMode.KEYWORD else find_meaning(connection, index, query, cache, check),
    )
    order = asked.order(mode)
    words = [word for word in matcher.words if word.text in matcher.weights]
    finder, weights = PlaceFinder(words), matcher.weights
    question = Question(
        mode=mode, words=words, finder=finder, weights=weights, meaning=asked.meaning, explain=query.explain
    )
    hits = tuple(read_hits(connection, question, order[: query.limit], query.offset))
    count_vectors = partial(_count_vectors, connection, counts, query)
    return HitPage(
        hits=hits,
        has_more=len(order) > query.limit,
        mode=mode,
        warnings=tuple(list_warnings(query, parsed, mode, count_vectors, is_empty=not order)),
        chunks=matcher.chunks,
        suggestions=() if query.offset or mode is SearchMode.SEMANTIC else tuple(asked.suggestions()),
    )


def _look(connection: sqlite3.Connection, index: TeamIndex) -> tuple[Counts, tantivy.Searcher]:
    """Take the rows and the postings at the same moment. Raises Overtaken, or IndexBuilding."""
    epoch = index.epoch
    # The transaction begins to see the rows with its first statement.
    counts = index.counts.at(connection)
    searcher = index.postings().searcher()
    if index.epoch != epoch:
        raise Overtaken
    return counts, searcher


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """One search."""

    connection: sqlite3.Connection
    counts: Counts
    query: SearchQuery
    parsed: ParsedQuery
    matcher: Matcher
    meaning: Meaning | None

    def order(self, mode: SearchMode) -> list[Placed[int]]:
        """Return the page's chunks in order, and one more chunk if there is a next page."""
        first, last = self.query.offset, self.query.offset + self.query.limit + 1
        scope = self._scope()
        if mode is SearchMode.SEMANTIC:
            return self._by_meaning(scope, last)[first:]
        named = self._list_named(scope) if self.parsed.words else []
        order = self._rank(mode, scope, last)
        if named:
            best = self._rank(mode, Scope(numbers=named), NAMED_FIRST)[:NAMED_FIRST]
            order = put_first(best, order)
        return order[first:last]

    def suggestions(self) -> Iterator[Suggestion]:
        """Yield words that stand in the scope for words of the query that stand nowhere."""
        scope, there = self._scope(), _Documents(self.connection)
        for number, word in enumerate(self.parsed.words):
            if word.weight < DECIDES:
                continue
            for keys in self.matcher.list_near(scope, number, NEAR, there.list_visible):
                texts = documents.read_words(self.connection, [there.chunk_key(key) for key in keys])
                if instead := suggest(word.text, [*texts.values()]):
                    yield Suggestion(word.text, instead)
                    break

    def _rank(self, mode: SearchMode, scope: Scope, count: int) -> list[Placed[int]]:
        """Rank the chunks in this scope by words, or by words and meaning."""
        if mode is SearchMode.KEYWORD:
            return self._by_words(scope, count)
        # The best `CANDIDATES` of both rankings, or more if the page needs more.
        count = max(CANDIDATES, count)
        by_words, by_meaning = self._by_words(scope, count), self._by_meaning(scope, count)
        if self.parsed.phrases:
            quoted = {placed.key for placed in by_words}
            by_meaning = [placed for placed in by_meaning if placed.key in quoted]
        return fuse_placed(by_words, by_meaning)

    def _list_named(self, scope: Scope) -> list[int]:
        """List the numbers of documents that the query names."""
        rows = documents.find_by_numbers(self.connection, self.matcher.list_called(scope))
        rated = []
        for row in rows:
            own_title, *_ = unpack_names(row["names"]) or ("",)
            rating = rate_names(self.parsed, names_of(row["title"], own_title), row["language"] or "")
            rated.append((row["posted_as"], rating))
        return choose_named(rated)

    def _by_words(self, scope: Scope, count: int) -> list[Placed[int]]:
        if not self.parsed.words:
            return []
        there = _Documents(self.connection)
        ranked = self.matcher.rank(scope, max(POOL, count), there.list_visible)
        chunks = [(there.chunk_key(key), score) for key, score, *_ in ranked]
        whole = {there.chunk_key(key) for key, _, is_whole, _ in ranked if is_whole}
        in_order = {there.chunk_key(key) for key, *_, is_in_order in ranked if is_in_order}
        # Those that are alike in all come in the order of their documents.
        chunks[:POOL] = sorted(chunks[:POOL], key=lambda pair: (-pair[1], pair[0]))
        placed = ranked_chunks.refine(
            chunks,
            whole,
            partial(documents.read_words, self.connection),
            in_order=in_order,
        )
        return placed[:count]

    def _by_meaning(self, scope: Scope, count: int) -> list[Placed[int]]:
        meaning = self.meaning
        if meaning is None:
            return []
        keys = None if scope.numbers is None else documents.find_posted(self.connection, scope.numbers).values()
        near = meaning.rank(self.connection, self.query.bucket_ids, keys, count)
        return [Placed(key, semantic=meaning.match(rank, cosine)) for rank, (key, cosine) in enumerate(near, start=1)]

    def _scope(self) -> Scope:
        numbers = None
        if self.query.source_ids is not None:
            found = documents.find_all(self.connection, list(self.query.source_ids))
            numbers = [row["posted_as"] for row in found.values()]
        bucket_ids = None if self.query.bucket_ids is None else distinct(self.query.bucket_ids)
        for bucket_id in bucket_ids or ():
            count = partial(documents.count_bucket_chunks, self.connection, bucket_id)
            if self.counts.get("bucket", bucket_id, count) == self.counts.chunks:
                bucket_ids = None
                break
        return Scope(bucket_ids=bucket_ids, numbers=numbers)


class _Documents:
    """The documents of a search's hits, which the postings know by numbers."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._known: dict[int, int] = {}

    def list_visible(self, keys: Iterable[int]) -> set[int]:
        """Return which of these chunks, given by their keys in the postings, have a document that is visible."""
        keys = list(keys)
        unknown = {key >> ORDINAL_BITS for key in keys} - self._known.keys()
        if unknown:
            self._known |= documents.find_posted(self._connection, unknown)
        return {key for key in keys if key >> ORDINAL_BITS in self._known}

    def chunk_key(self, key: int) -> int:
        """Return the key of a chunk, given by its key in the postings."""
        return self._known[key >> ORDINAL_BITS] << ORDINAL_BITS | key & MAX_ORDINAL


def _count_vectors(connection: sqlite3.Connection, counts: Counts, query: SearchQuery) -> VectorCount:
    model = query.vector.model if query.vector else ""
    if query.source_ids is not None:
        return count_missing(connection, model, query.bucket_ids, query.source_ids)
    # Take these counts from the cache, unless the index or its vectors have changed.
    (revision,) = connection.execute("SELECT vector_revision FROM totals").fetchone()
    place = "*" if query.bucket_ids is None else " ".join(sorted(query.bucket_ids))
    return VectorCount(
        missing=counts.get(
            f"missing {revision} {model}", place, lambda: count_missing(connection, model, query.bucket_ids).missing
        ),
        chunks=counts.get("chunks", place, lambda: count_missing(connection, model, query.bucket_ids).chunks),
    )
