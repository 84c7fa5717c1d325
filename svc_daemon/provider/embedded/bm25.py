"""Finds the chunks with the highest BM25 scores for the words of a query, and reorders the best.

A chunk moves up if it has every query word, or if it shares many words with the first few chunks.

Most matching chunks have only one common word of the query, which adds little to a score. So if some query words are
much rarer, only chunks with a rare word are scored first. All matching chunks are scored only if a chunk without a rare
word could still be among the results.
"""

import json
import sqlite3
from collections.abc import Mapping, Sequence

from svc_daemon.core.search.ranking import POOL, idf
from svc_daemon.provider import ranked_chunks
from svc_daemon.provider.embedded.hits import COLUMNS
from svc_daemon.provider.embedded.schema import ORDINAL_BITS
from svc_daemon.provider.embedded.scopes import Scope
from svc_daemon.provider.ranked_chunks import Placed

#: A chunk's key and its BM25 score.
Ranked = tuple[int, float]


def refine(connection: sqlite3.Connection, whole_expression: str | None, ranked: Sequence[Ranked]) -> list[Placed[int]]:
    """Reorder the chunks. `whole_expression` matches chunks that have every query word; None if all chunks do."""
    whole = {key for key, _ in ranked[:POOL]}
    if whole_expression is not None:
        rows = connection.execute(
            """
            SELECT rowid FROM chunk_index
            WHERE chunk_index MATCH :expression AND +rowid IN (SELECT value FROM json_each(:keys))
            """,
            {"expression": whole_expression, "keys": json.dumps(list(whole))},
        )
        whole = {row["rowid"] for row in rows}

    def read_texts(keys: Sequence[int]) -> dict[int, str]:
        rows = connection.execute(
            """
            SELECT c.chunk_key, d.title || ' ' || c.headings || ' ' || c.text AS words FROM chunks AS c
            JOIN documents AS d ON d.document_key = c.chunk_key >> :ordinal_bits
            WHERE c.chunk_key IN (SELECT value FROM json_each(:keys))
            """,
            {"keys": json.dumps(keys), "ordinal_bits": ORDINAL_BITS},
        )
        return {row["chunk_key"]: row["words"] for row in rows}

    return ranked_chunks.refine(ranked, whole, read_texts)


#: The weight of each column for BM25. `buckets` is only used to filter, so it adds nothing to a score.
WEIGHTS = {"title": 2.0, "headings": 1.0, "text": 1.0, "unspaced": 1.0, "buckets": 0.0}
#: In FTS5, a word's BM25 score is at most this multiple of its idf (k1 + 1, and k1 is 1.2).
MOST_OF_IDF = 2.2
#: Search rare words first only if common words occur in at least this many times as many chunks as rare words.
SHARE = 4
#: Search rare words first only if the highest scores of the common words add up to at most this fraction of the rarest
#: word's highest score.
LIKELY = 0.6
#: Search rare words first only if common words occur in at least this many chunks.
LEAST_SAVED = 1000


def rank(
    connection: sqlite3.Connection, having: Mapping[str, int], scope: Scope, chunks: int, limit: int
) -> list[Ranked]:
    """Return the best `limit` chunks within the scope, best first; equal scores by key.

    `having` maps each query word to the number of chunks with it.
    """
    words = sorted(having, key=lambda word: (having[word], word))
    if scope.is_narrow:
        return _score(connection, any_of(words), scope, limit)
    # A document is hidden while it is written or removed. Its chunks are added here, because FTS5 counts them for BM25.
    (hidden,) = connection.execute("SELECT coalesce(sum(chunks), 0) FROM documents WHERE hidden = 1").fetchone()
    total = chunks + hidden
    counts = [having[word] for word in words]
    bounds = [MOST_OF_IDF * idf(total, count) for count in counts]
    rare = _count_rare(counts, bounds, limit)
    if rare:
        both = f"({_joined(words[:rare], 'OR')}) AND ({_joined(words[rare:], 'OR')})"
        scored = dict(_score(connection, any_of(words[:rare]), scope, limit))
        # These scores count rare words only. If a chunk has common words too, replace its score by that of all words.
        scored |= dict(_score(connection, _in_columns(both), scope, limit))
        ranked = sorted(scored.items(), key=lambda item: (-item[1], item[0]))[:limit]
        # A chunk without rare words can't have a higher score than the sum of its common words' highest scores.
        if len(ranked) == limit and ranked[-1][1] > sum(bounds[rare:]):
            return ranked
    return _score(connection, any_of(words), scope, limit)


def any_of(words: Sequence[str]) -> str:
    """Build the FTS5 expression that matches chunks with any of the words."""
    return _in_columns(_joined(words, "OR"))


def all_of(words: Sequence[str]) -> str:
    """Build the FTS5 expression that matches chunks with all of the words."""
    return _in_columns(_joined(words, "AND"))


def _count_rare(having: Sequence[int], bounds: Sequence[float], limit: int) -> int:
    """Choose how many of the rarest words to search first; 0 if that would save too little."""
    for rare in reversed(range(1, len(having))):
        few, many = sum(having[:rare]), sum(having[rare:])
        is_likely = few >= limit and sum(bounds[rare:]) <= LIKELY * bounds[0]
        if is_likely and many >= max(LEAST_SAVED, SHARE * few):
            return rare
    return 0


def _score(connection: sqlite3.Connection, expression: str, scope: Scope, limit: int) -> list[Ranked]:
    # SQLite checks the conditions first, and computes BM25, which is slower, only for chunks that meet them.
    rows = connection.execute(
        """
        SELECT rowid, bm25(chunk_index, :title, :headings, :text, :unspaced, :buckets) AS badness FROM chunk_index
        WHERE chunk_index MATCH :expression
            AND chunk_index.rowid >> :ordinal_bits NOT IN (SELECT document_key FROM documents WHERE hidden = 1)
            AND (:bucket_ids IS NULL OR EXISTS (
                SELECT 1 FROM memberships AS m WHERE m.document_key = chunk_index.rowid >> :ordinal_bits
                    AND m.bucket_id IN (SELECT value FROM json_each(:bucket_ids))))
            AND (:source_ids IS NULL OR chunk_index.rowid >> :ordinal_bits IN (
                SELECT document_key FROM documents
                WHERE hidden = 0 AND source_id IN (SELECT value FROM json_each(:source_ids))))
        ORDER BY badness, rowid LIMIT :limit
        """,
        {
            "expression": scope.restrict(expression),
            "ordinal_bits": ORDINAL_BITS,
            "limit": limit,
            **scope.parameters(),
            **WEIGHTS,
        },
    )
    return [(row["rowid"], -row["badness"]) for row in rows]


def _joined(words: Sequence[str], operator: str) -> str:
    return f" {operator} ".join(f'"{word}"' for word in words)


def _in_columns(expression: str) -> str:
    return f"{{{' '.join(COLUMNS)}}} : ({expression})"
