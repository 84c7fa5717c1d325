"""Keyword, semantic and hybrid search."""

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from svc_daemon.core.search.ranking import POOL, idf
from svc_daemon.core.text.words import parse_query
from svc_daemon.provider.contract import HitPage, SearchMode, SearchQuery, VectorCount
from svc_daemon.provider.embedded.bm25 import all_of, any_of, rank, refine
from svc_daemon.provider.embedded.embeddings import count_missing
from svc_daemon.provider.embedded.files import TeamIndex
from svc_daemon.provider.embedded.hits import Question, read_hits
from svc_daemon.provider.embedded.scopes import Counts, choose_scope
from svc_daemon.provider.embedded.semantics import SignsCache, find_meaning
from svc_daemon.provider.ranked_chunks import CANDIDATES, Placed, fuse_placed, list_warnings

#: Size of SQLite's page cache per connection, in KiB. A larger cache would help little.
CACHE_KIB = 12_000


def search(
    connection: sqlite3.Connection, index: TeamIndex, cache: SignsCache, query: SearchQuery, check: Callable[[], None]
) -> HitPage:
    """Search and read one page of hits, in this connection's transaction. `check` may raise SearchTimeout."""
    connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    parsed = parse_query(query.text)
    mode = query.mode if query.vector is not None else SearchMode.KEYWORD
    if any(ids is not None and not ids for ids in (query.bucket_ids, query.source_ids)):
        return HitPage(mode=mode)
    counts = index.counts.at(connection)
    having = {word: _count_having(connection, counts, word) for word in parsed.words}
    question = Question(
        mode=mode,
        weights={word: idf(counts.chunks, count) for word, count in having.items()},
        having=having,
        meaning=None if mode is SearchMode.KEYWORD else find_meaning(connection, index, query, cache, check),
        explain=query.explain,
    )
    order = _ORDERS[mode](connection, counts, question, query)
    return HitPage(
        hits=tuple(read_hits(connection, question, order[: query.limit], query.offset)),
        has_more=len(order) > query.limit,
        mode=mode,
        warnings=tuple(list_warnings(query, parsed, mode, partial(_count_vectors, connection, counts, query))),
        chunks=counts.chunks,
    )


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


def _by_words(
    connection: sqlite3.Connection, counts: Counts, question: Question, query: SearchQuery
) -> list[Placed[int]]:
    if not question.weights:
        return []
    words = tuple(question.weights)
    limit = max(POOL, query.offset + query.limit + 1)
    ranked = rank(connection, question.having, choose_scope(connection, counts, query), counts.chunks, limit)
    refined = refine(connection, all_of(words) if len(words) > 1 else None, ranked)
    return refined[query.offset :][: query.limit + 1]


def _by_meaning(connection: sqlite3.Connection, _: Counts, question: Question, query: SearchQuery) -> list[Placed[int]]:
    meaning = question.meaning
    if meaning is None:
        return []
    near = meaning.rank(connection, query, query.offset + query.limit + 1)
    placed = [Placed(key, semantic=meaning.match(rank, cosine)) for rank, (key, cosine) in enumerate(near, start=1)]
    return placed[query.offset :]


def _by_both(
    connection: sqlite3.Connection, counts: Counts, question: Question, query: SearchQuery
) -> list[Placed[int]]:
    """Merge the keyword and the semantic ranking: the best `CANDIDATES` of each, or more if the page needs more."""
    count = max(CANDIDATES, query.offset + query.limit + 1)
    first = replace(query, offset=0, limit=count - 1)
    words = _by_words(connection, counts, question, first)
    meaning = _by_meaning(connection, counts, question, first)
    return fuse_placed(words, meaning)[query.offset : query.offset + query.limit + 1]


#: For each mode, the function that returns the page's chunks in order, and one more chunk if there is a next page.
_ORDERS = {SearchMode.KEYWORD: _by_words, SearchMode.SEMANTIC: _by_meaning, SearchMode.HYBRID: _by_both}


def _count_having(connection: sqlite3.Connection, counts: Counts, word: str) -> int:
    """Count the chunks that contain the word; cached until the index changes."""
    statement, expression = "SELECT count(*) FROM chunk_index WHERE chunk_index MATCH ?", any_of([word])
    return counts.get("word", word, lambda: int(connection.execute(statement, (expression,)).fetchone()[0]))
