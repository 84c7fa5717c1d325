"""Finding chunks by words: BM25 makes the order, the share of the query's idf makes the score."""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence

from svc_daemon.core.queries import ParsedQuery, parse_query
from svc_daemon.core.ranking import coverage, idf
from svc_daemon.provider.contract import (
    Hit,
    KeywordMatch,
    SearchMode,
    SearchPage,
    SearchQuery,
    TermMatch,
    chunk_id,
)
from svc_daemon.provider.embedded import documents, memberships
from svc_daemon.provider.embedded.counts import Counts, CountsCache
from svc_daemon.provider.embedded.schema import MAX_ORDINAL, ORDINAL_BITS
from svc_daemon.provider.embedded.scopes import Scope, choose_scope

#: A word in the title counts twice; a bucket's word decides who is in and counts for nothing.
WEIGHTS = {"title": 2.0, "headings": 1.0, "text": 1.0, "buckets": 0.0}

#: A chunk's key and its BM25, the more the better.
Ranked = tuple[int, float]


def search(connection: sqlite3.Connection, cache: CountsCache, query: SearchQuery) -> SearchPage:
    """One page of hits, all read in the snapshot of this connection."""
    parsed = parse_query(query.text)
    warnings = tuple(_warnings(parsed, query))
    if not parsed.words or _names_nothing(query):
        return SearchPage(warnings=warnings)
    counts = cache.at(connection)
    scope = choose_scope(connection, counts, query)
    ranked = _rank(connection, parsed.words, scope, query)
    hits = _hits(connection, ranked[: query.limit], _weights(connection, counts, parsed.words), query.offset)
    return SearchPage(hits=tuple(hits), has_more=len(ranked) > query.limit, warnings=warnings)


def _names_nothing(query: SearchQuery) -> bool:
    return any(ids is not None and not ids for ids in (query.bucket_ids, query.source_ids))


def _warnings(parsed: ParsedQuery, query: SearchQuery) -> Iterator[str]:
    if parsed.words_left_out:
        yield f"The query is long: its last {parsed.words_left_out} words were left out."
    if query.mode is SearchMode.SEMANTIC:
        yield "The search went by keyword: this index holds no vectors."


def _expression(words: Sequence[str]) -> str:
    """Any of the words, each in quotes so that none is syntax, in the columns that hold the document's own words."""
    return "{title headings text} : (" + " OR ".join(f'"{word}"' for word in words) + ")"


def _rank(connection: sqlite3.Connection, words: Sequence[str], scope: Scope, query: SearchQuery) -> list[Ranked]:
    """The chunks of the page that was asked for, best first, and one more if there is one."""
    # The conditions on a document are tried before the chunk's BM25 is worked out, which costs more than they do.
    rows = connection.execute(
        """
        SELECT rowid, bm25(chunk_index, :title, :headings, :text, :buckets) AS badness FROM chunk_index
        WHERE chunk_index MATCH :expression
            AND chunk_index.rowid >> :ordinal_bits NOT IN (SELECT document_key FROM documents WHERE hidden = 1)
            AND (:bucket_ids IS NULL OR EXISTS (
                SELECT 1 FROM memberships AS m WHERE m.document_key = chunk_index.rowid >> :ordinal_bits
                    AND m.bucket_id IN (SELECT value FROM json_each(:bucket_ids))))
            AND (:source_ids IS NULL OR chunk_index.rowid >> :ordinal_bits IN (
                SELECT document_key FROM documents
                WHERE hidden = 0 AND source_id IN (SELECT value FROM json_each(:source_ids))))
        ORDER BY badness, rowid LIMIT :limit OFFSET :offset
        """,
        {
            "expression": scope.restrict(_expression(words)),
            "ordinal_bits": ORDINAL_BITS,
            "limit": query.limit + 1,
            "offset": query.offset,
            **scope.parameters(),
            **WEIGHTS,
        },
    )
    return [(row["rowid"], -row["badness"]) for row in rows]


def _weights(connection: sqlite3.Connection, counts: Counts, words: Sequence[str]) -> dict[str, float]:
    """The idf of each word among the team's chunks."""

    def weigh(word: str) -> float:
        return idf(counts.chunks, counts.get("word", word, lambda: _count_chunks(connection, word)))

    return {word: weigh(word) for word in words}


def _count_chunks(connection: sqlite3.Connection, word: str) -> int:
    (count,) = connection.execute(
        "SELECT count(*) FROM chunk_index WHERE chunk_index MATCH ?", (_expression([word]),)
    ).fetchone()
    return int(count)


def _hits(
    connection: sqlite3.Connection, ranked: Sequence[Ranked], weights: Mapping[str, float], offset: int
) -> Iterator[Hit]:
    keys = json.dumps([key for key, _ in ranked])
    rows = _chunk_rows(connection, keys)
    having = {word: _keys_having(connection, word, keys) for word in weights}
    for rank, (key, bm25) in enumerate(ranked, start=offset + 1):
        matched = [word for word in weights if key in having[word]]
        row = rows[key]
        yield Hit(
            chunk_id=chunk_id(row["source_id"], row["generation"], key & MAX_ORDINAL),
            source_id=row["source_id"],
            generation=row["generation"],
            bucket_ids=memberships.list_buckets(connection, key >> ORDINAL_BITS),
            chunk=documents.chunk_from_row(row),
            score=coverage(weights, matched),
            rank=rank,
            matches=tuple(TermMatch(term=word, idf=weights[word]) for word in matched),
            keyword=KeywordMatch(rank=rank, bm25=bm25),
            semantic=None,
            fused=None,
        )


def _chunk_rows(connection: sqlite3.Connection, keys: str) -> dict[int, sqlite3.Row]:
    rows = connection.execute(
        """
        SELECT c.*, d.source_id, d.generation FROM chunks AS c
        JOIN documents AS d ON d.document_key = c.chunk_key >> :ordinal_bits
        WHERE c.chunk_key IN (SELECT value FROM json_each(:keys))
        """,
        {"keys": keys, "ordinal_bits": ORDINAL_BITS},
    )
    return {row["chunk_key"]: row for row in rows}


def _keys_having(connection: sqlite3.Connection, word: str, keys: str) -> frozenset[int]:
    """Which of these chunks have the word, as the index sees words: stemmed, and without accents."""
    # The plus keeps FTS5 from seeking each key by itself: one walk through the word's postings is cheaper.
    rows = connection.execute(
        """
        SELECT rowid FROM chunk_index
        WHERE chunk_index MATCH :expression AND +rowid IN (SELECT value FROM json_each(:keys))
        """,
        {"expression": _expression([word]), "keys": keys},
    )
    return frozenset(row["rowid"] for row in rows)
