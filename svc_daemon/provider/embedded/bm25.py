"""The best chunks by their words, in the order of BM25.

To score a chunk takes about a microsecond, and most of a query's chunks have but one word of it, a common one. What
common words can add to a score has a bound. So where some words of a query are much rarer than the others, the chunks
that have a rare one are scored alone; if the last of the page is above the bound, no other chunk can be on it. The
words always come in one order, and so each chunk has the same score to the last bit, whichever way it was found.
"""

import sqlite3
from collections.abc import Mapping, Sequence

from svc_daemon.core.search.ranking import idf
from svc_daemon.provider.embedded.hits import COLUMNS
from svc_daemon.provider.embedded.refining import Ranked
from svc_daemon.provider.embedded.schema import ORDINAL_BITS
from svc_daemon.provider.embedded.scopes import Scope

#: A word in the title counts twice; a bucket's word decides who is in and counts for nothing.
WEIGHTS = {"title": 2.0, "headings": 1.0, "text": 1.0, "unspaced": 1.0, "buckets": 0.0}
#: A word that occurs in a chunk any number of times scores less than this many times its idf: FTS5's k1 is 1.2.
MOST_OF_IDF = 2.2
#: The common words must have so many times the chunks of the rare ones, and so many at all, or little would be saved.
SHARE = 4
#: The page's last chunk mostly scores a little more than the idf of the rarest word: so much of that word's bound.
LIKELY = 0.6
LEAST_SAVED = 1000


def rank(
    connection: sqlite3.Connection, having: Mapping[str, int], scope: Scope, chunks: int, limit: int
) -> list[Ranked]:
    """The first `limit` chunks of the scope by their BM25, best first; of equal ones the lower key's comes first.

    `having` is how many of the index's `chunks` have each word of the query.
    """
    words = sorted(having, key=lambda word: (having[word], word))
    if scope.is_narrow:
        return _score(connection, any_of(words), scope, limit)
    # Chunks of documents that are being written or removed: no search shows them, but BM25 counts them.
    (hidden,) = connection.execute("SELECT coalesce(sum(chunks), 0) FROM documents WHERE hidden = 1").fetchone()
    total = chunks + hidden
    counts = [having[word] for word in words]
    bounds = [MOST_OF_IDF * idf(total, count) for count in counts]
    rare = _count_rare(counts, bounds, limit)
    if rare:
        both = f"({_joined(words[:rare], 'OR')}) AND ({_joined(words[rare:], 'OR')})"
        scored = dict(_score(connection, any_of(words[:rare]), scope, limit))
        # What is not among the best of these is not among the best of all, so it may keep what it scores by rare words.
        scored |= dict(_score(connection, _in_columns(both), scope, limit))
        ranked = sorted(scored.items(), key=lambda item: (-item[1], item[0]))[:limit]
        if len(ranked) == limit and ranked[-1][1] > sum(bounds[rare:]):
            return ranked
    return _score(connection, any_of(words), scope, limit)


def any_of(words: Sequence[str]) -> str:
    """Any of the words, each in quotes so that none is syntax, in the columns that hold the document's own words."""
    return _in_columns(_joined(words, "OR"))


def all_of(words: Sequence[str]) -> str:
    """The same for chunks that have every word, wherever in them."""
    return _in_columns(_joined(words, "AND"))


def _count_rare(having: Sequence[int], bounds: Sequence[float], limit: int) -> int:
    """How many of the words, rarest first, may be enough to search for; 0 where that would save too little."""
    for rare in reversed(range(1, len(having))):
        few, many = sum(having[:rare]), sum(having[rare:])
        is_likely = few >= limit and sum(bounds[rare:]) <= LIKELY * bounds[0]
        if is_likely and many >= max(LEAST_SAVED, SHARE * few):
            return rare
    return 0


def _score(connection: sqlite3.Connection, expression: str, scope: Scope, limit: int) -> list[Ranked]:
    # The conditions on a document are tried before the chunk's BM25 is worked out, which costs more than they do.
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
