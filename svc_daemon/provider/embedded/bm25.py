"""Finds the best chunks by keyword, ranked by BM25.

Scoring a chunk takes about a microsecond, and most matching chunks contain only one word of the query, a common one.
Common words can add only a limited amount to a score. So if some words of a query are much rarer than the others, only
chunks with a rare word are scored first. If even the lowest score on the result page is above the highest that common
words alone can give, no other chunk can be on the page. Otherwise, all matching chunks are scored. FTS5 gets the words
in the same order in both cases, so that a chunk's score is exactly the same.
"""

import sqlite3
from collections.abc import Mapping, Sequence

from svc_daemon.core.search.ranking import idf
from svc_daemon.provider.embedded.hits import COLUMNS
from svc_daemon.provider.embedded.refining import Ranked
from svc_daemon.provider.embedded.schema import ORDINAL_BITS
from svc_daemon.provider.embedded.scopes import Scope

#: BM25 weight of each column. Words in the title count twice; the words for buckets are only used to filter.
WEIGHTS = {"title": 2.0, "headings": 1.0, "text": 1.0, "unspaced": 1.0, "buckets": 0.0}
#: Upper bound of a word's score, as a multiple of its idf, no matter how often it occurs in the chunk; it follows from
#: FTS5's k1 of 1.2.
MOST_OF_IDF = 2.2
#: Rare words are searched first only if the number of chunks with common words is at least this many times the number
#: of chunks with rare words; otherwise too little time would be saved.
SHARE = 4
#: Rare words are searched first only if the highest possible scores of the common words add up to at most this fraction
#: of the rarest word's highest possible score. The latter is an estimate of the score of the last chunk on the page.
LIKELY = 0.6
#: Rare words are searched first only if at least this many chunks contain common words; otherwise too little time would
#: be saved.
LEAST_SAVED = 1000


def rank(
    connection: sqlite3.Connection, having: Mapping[str, int], scope: Scope, chunks: int, limit: int
) -> list[Ranked]:
    """Return the best `limit` chunks by BM25 in the buckets and sources of the scope, best first; equal scores by key.

    `having` maps each word of the query to the number of chunks with it; `chunks` is the number of all chunks.
    """
    words = sorted(having, key=lambda word: (having[word], word))
    if scope.is_narrow:
        return _score(connection, any_of(words), scope, limit)
    # Number of chunks of documents that are being written or removed. Searches exclude them, but FTS5's BM25 counts
    # them.
    (hidden,) = connection.execute("SELECT coalesce(sum(chunks), 0) FROM documents WHERE hidden = 1").fetchone()
    total = chunks + hidden
    counts = [having[word] for word in words]
    bounds = [MOST_OF_IDF * idf(total, count) for count in counts]
    rare = _count_rare(counts, bounds, limit)
    if rare:
        both = f"({_joined(words[:rare], 'OR')}) AND ({_joined(words[rare:], 'OR')})"
        scored = dict(_score(connection, any_of(words[:rare]), scope, limit))
        # So far, the scores count rare words only. Compute the full scores of the best `limit` chunks that also have
        # common words. The other such chunks can't be among the best `limit`, so their incomplete scores don't matter.
        scored |= dict(_score(connection, _in_columns(both), scope, limit))
        ranked = sorted(scored.items(), key=lambda item: (-item[1], item[0]))[:limit]
        if len(ranked) == limit and ranked[-1][1] > sum(bounds[rare:]):
            return ranked
    return _score(connection, any_of(words), scope, limit)


def any_of(words: Sequence[str]) -> str:
    """Build the FTS5 expression for chunks with any of the words.

    The words are quoted, so that none is read as syntax.
    """
    return _in_columns(_joined(words, "OR"))


def all_of(words: Sequence[str]) -> str:
    """Build the FTS5 expression for chunks with all of the words, in any column."""
    return _in_columns(_joined(words, "AND"))


def _count_rare(having: Sequence[int], bounds: Sequence[float], limit: int) -> int:
    """Choose how many of the rarest words to search for before the others; 0 if that would save too little time."""
    for rare in reversed(range(1, len(having))):
        few, many = sum(having[:rare]), sum(having[rare:])
        is_likely = few >= limit and sum(bounds[rare:]) <= LIKELY * bounds[0]
        if is_likely and many >= max(LEAST_SAVED, SHARE * few):
            return rare
    return 0


def _score(connection: sqlite3.Connection, expression: str, scope: Scope, limit: int) -> list[Ranked]:
    # The conditions in this statement are evaluated before the chunk's BM25, which takes longer.
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
