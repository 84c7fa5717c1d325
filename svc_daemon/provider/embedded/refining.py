"""Reorders the best chunks of a keyword search.

A chunk moves up if it has every query word, or if it shares many words with the first few chunks.
"""

import json
import sqlite3
from collections.abc import Sequence

from svc_daemon.core.search.relevance_feedback import POOL
from svc_daemon.provider import ranked_chunks
from svc_daemon.provider.embedded.schema import ORDINAL_BITS
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
