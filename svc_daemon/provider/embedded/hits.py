"""Builds hits from the chosen chunks: text and location, matching words, similarity and score.

Some SQL statements return a list as one JSON text, because for each row, Python may have to wait for its global lock.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from svc_daemon.core.search.ranking import coverage
from svc_daemon.core.text.places import Place, PlaceFinder
from svc_daemon.core.text.terms import QueryWord
from svc_daemon.provider.contract import Hit, Part, SearchMode, TermMatch, chunk_id
from svc_daemon.provider.embedded import documents
from svc_daemon.provider.embedded.packing import unpack_names
from svc_daemon.provider.embedded.schema import MAX_ORDINAL, ORDINAL_BITS
from svc_daemon.provider.embedded.semantics import Meaning
from svc_daemon.provider.ranked_chunks import PARTS, Placed, merge_spans, score_hit


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
        places["title"] = find("\n".join((row["title"], *unpack_names(row["names"]))), language)
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
