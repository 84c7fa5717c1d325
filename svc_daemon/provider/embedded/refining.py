"""Reorders the best chunks by BM25: promotes those with every query word, or with words of the best chunks."""

import json
import sqlite3
from collections.abc import Sequence

from svc_daemon.core.search.ranking import POOL, Candidate, reorder, weigh_feedback
from svc_daemon.provider.embedded.schema import ORDINAL_BITS

#: A chunk's key and its BM25; higher is better.
Ranked = tuple[int, float]
#: A chunk's key, its BM25 and its feedback score; the last is None if feedback was not used.
Refined = tuple[int, float, float | None]


def refine(connection: sqlite3.Connection, whole_expression: str | None, ranked: Sequence[Ranked]) -> list[Refined]:
    """Reorder `ranked`. `whole_expression` matches the chunks with every query word; None if all chunks have them."""
    pool = ranked[:POOL]
    keys = json.dumps([key for key, _ in pool])
    whole = {key for key, _ in pool}
    if whole_expression is not None:
        rows = connection.execute(
            """
            SELECT rowid FROM chunk_index
            WHERE chunk_index MATCH :expression AND +rowid IN (SELECT value FROM json_each(:keys))
            """,
            {"expression": whole_expression, "keys": keys},
        )
        whole = {row["rowid"] for row in rows}
    feedback: list[float | None] = [None] * len(pool)
    if len(pool) == POOL:
        rows = connection.execute(
            """
            SELECT c.chunk_key, d.title || ' ' || c.headings || ' ' || c.text AS words FROM chunks AS c
            JOIN documents AS d ON d.document_key = c.chunk_key >> :ordinal_bits
            WHERE c.chunk_key IN (SELECT value FROM json_each(:keys))
            """,
            {"keys": keys, "ordinal_bits": ORDINAL_BITS},
        )
        texts = {row["chunk_key"]: row["words"] for row in rows}
        feedback = [*weigh_feedback([bm25 for _, bm25 in pool], [texts[key] for key, _ in pool])]
    candidates = [
        Candidate(bm25=bm25, is_whole=key in whole, feedback=share or 0.0)
        for (key, bm25), share in zip(pool, feedback, strict=True)
    ]
    first = [(*pool[position], feedback[position]) for position in reorder(candidates)]
    return first + [(key, bm25, None) for key, bm25 in ranked[POOL:]]
