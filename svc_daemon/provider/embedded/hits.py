"""Builds hits from the chosen chunks: text and location, matching words, similarity and score.

Some SQL statements return a list as one JSON text, because for each row, Python may have to wait for its global lock.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from svc_daemon.core.search.ranking import coverage
from svc_daemon.core.text.words import cut_unspaced
from svc_daemon.provider.contract import Hit, Part, SearchMode, TermMatch, chunk_id
from svc_daemon.provider.embedded import documents
from svc_daemon.provider.embedded.packing import unpack_headings
from svc_daemon.provider.embedded.schema import MAX_ORDINAL, ORDINAL_BITS
from svc_daemon.provider.embedded.semantics import Meaning
from svc_daemon.provider.ranked_chunks import PARTS, Placed, score_hit
from svc_daemon.wire.parsing import parse_json

#: If a word occurs in at most this many chunks for each hit, the word's whole list of chunks is read. For more chunks,
#: looking up each hit is faster.
WALKED = 400

#: The indexed columns: `PARTS`, and a column for words in scripts without spaces.
COLUMNS = (*PARTS, "unspaced")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A query split into words, with the statistics for ranking."""

    mode: SearchMode
    #: Inverse document frequency of each word, in the query's order.
    weights: Mapping[str, float]
    #: How many chunks contain each word.
    having: Mapping[str, int]
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
    having = {word: _keys_having(connection, question, word, keys) for word in question.weights}
    parts = _find_parts(connection, question, rows) if question.explain else {}
    # Hits that only the keyword search found have no cosine yet.
    meaning, others = question.meaning, [placed.key for placed in order if placed.semantic is None]
    cosines = meaning.measure(connection, others) if meaning is not None and others else {}
    for rank, placed in enumerate(order, start=offset + 1):
        key, row, semantic = placed.key, rows[placed.key], placed.semantic
        if meaning is not None and semantic is None and key in cosines:
            semantic = meaning.match(None, cosines[key])
        matched = [word for word in question.weights if key in having[word]]
        covered = coverage(question.weights, matched)
        yield Hit(
            chunk_id=chunk_id(row["source_id"], row["generation"], key & MAX_ORDINAL),
            source_id=row["source_id"],
            generation=row["generation"],
            bucket_ids=buckets.get(key >> ORDINAL_BITS, ()),
            chunk=documents.chunk_from_row(row),
            score=score_hit(question.mode, covered, semantic),
            rank=rank,
            matches=tuple(
                TermMatch(
                    term=word,
                    idf=question.weights[word],
                    parts=tuple(part for part in PARTS if key in parts.get((word, part), ())),
                )
                for word in matched
            ),
            coverage=covered,
            keyword=placed.keyword,
            semantic=semantic,
            fused=placed.fused,
        )


def _find_parts(
    connection: sqlite3.Connection, question: Question, rows: Mapping[int, sqlite3.Row]
) -> dict[tuple[str, Part], frozenset[int]]:
    """For each word and each part (title, headings, text), find the chunks with the word in that part."""
    # For languages without spaces, such as Chinese, the index has one column for all parts. So look in the texts.
    cut: dict[int, dict[Part, frozenset[str]]] = {}
    for key, row in rows.items():
        texts: dict[Part, str] = {
            "title": row["title"],
            "headings": " ".join(unpack_headings(row["headings"])),
            "text": row["text"],
        }
        cut[key] = {part: frozenset(cut_unspaced(text.lower())) for part, text in texts.items()}
    return {
        (word, part): _keys_having(connection, question, word, list(rows), (part,))
        | {key for key, parts in cut.items() if word in parts[part]}
        for word in question.weights
        for part in PARTS
    }


def _chunk_rows(connection: sqlite3.Connection, keys: Sequence[int]) -> dict[int, sqlite3.Row]:
    rows = connection.execute(
        """
        SELECT c.*, d.source_id, d.generation, d.title FROM chunks AS c
        JOIN documents AS d ON d.document_key = c.chunk_key >> :ordinal_bits
        WHERE c.chunk_key IN (SELECT value FROM json_each(:keys))
        """,
        {"keys": json.dumps(keys), "ordinal_bits": ORDINAL_BITS},
    )
    return {row["chunk_key"]: row for row in rows}


def _keys_having(
    connection: sqlite3.Connection, question: Question, word: str, keys: Sequence[int], parts: Sequence[str] = COLUMNS
) -> frozenset[int]:
    """Find which of these chunks contain the word, stemmed and without accents, in these parts."""
    # The unary plus makes FTS5 read the word's whole list instead of looking up each key.
    rowid = "+rowid" if question.having[word] <= WALKED * len(keys) else "rowid"
    (found,) = connection.execute(
        f"""
        SELECT json_group_array(rowid) FROM chunk_index
        WHERE chunk_index MATCH :expression AND {rowid} IN (SELECT value FROM json_each(:keys))
        """,  # noqa: S608 - `rowid` has no user input
        {"expression": f'{{{" ".join(parts)}}} : "{word}"', "keys": json.dumps(keys)},
    ).fetchone()
    return frozenset(parse_json(found))
