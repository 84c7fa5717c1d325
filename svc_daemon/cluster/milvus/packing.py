"""Converts documents to rows with the terms that Milvus indexes, and back.

Terms with characters other than ASCII letters and digits are encoded, so that Milvus doesn't change them.

Milvus's text fields are short, so a text is stored as its chunks and its body, the text between chunks.
"""

import base64
import json
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

from svc_daemon.cluster.milvus.editions import Edition
from svc_daemon.cluster.milvus.schema import MOST_BUCKETS, TEXT_BYTES, Row, chunk_row_id
from svc_daemon.core.text.chunking import Chunk
from svc_daemon.core.text.languages import guess_language
from svc_daemon.core.text.terms import QueryWord, index_terms
from svc_daemon.provider.contract import IndexDocument
from svc_daemon.provider.errors import ProviderFailed
from svc_daemon.provider.ranked_chunks import distinct, storable
from svc_daemon.wire.light.parsing import parse_json

#: How many times a word in the title counts, as in the SQLite index.
TITLE_WEIGHT = 2
#: Prefix of terms that are encoded in hexadecimal. No word begins with it.
_ENCODED = "0q"
#: Maximum number of encoded terms that are kept: the common ones, which make up most of a document.
MOST_CACHED = 20_000
#: Between the words of parts, which are no phrase together, and before the forms. Milvus takes no notice of it.
_BETWEEN, _BEFORE_FORMS = " | ", " || "


@lru_cache(MOST_CACHED)
def encode_term(term: str) -> str:
    """Return the term in ASCII letters and digits, of which Milvus makes one token."""
    return term if term.isascii() and term.isalnum() else _ENCODED + term.encode(errors="replace").hex()


def pack_terms(title: str, headings: Iterable[str], text: str, language: str) -> str:
    """Join the terms of a chunk's title, headings and text, cut to the field's size."""
    terms = [index_terms(part, language) for part in (*[title] * TITLE_WEIGHT, *headings, text)]
    words = _BETWEEN.join(" ".join(map(encode_term, each.words.split())) for each in terms)
    forms = " ".join(encode_term(form) for each in terms for form in each.forms.split())
    packed = f"{words}{_BEFORE_FORMS}{forms}"
    return packed if len(packed) <= TEXT_BYTES else packed[:TEXT_BYTES].rpartition(" ")[0]


class PackedTerms:
    """The terms of a chunk, as `pack_terms` has joined them."""

    def __init__(self, packed: str) -> None:
        words, _, forms = packed.partition(_BEFORE_FORMS)
        self._words = f" {words} "
        self._counts = Counter(words.split()), Counter(forms.split())

    def __len__(self) -> int:
        return self._counts[0].total()

    def has_run(self, terms: Sequence[str]) -> bool:
        """Whether these words follow each other."""
        return f" {' '.join(map(encode_term, terms))} " in self._words

    def weigh(self, word: QueryWord) -> tuple[float, int]:
        """Return the weight of the best way in which the word occurs here, and how often it does; 0 if it doesn't."""
        best = (0.0, 0)
        for way in word.alternatives:
            often = self._counts[way.in_forms][encode_term(way.terms[0])]
            if often and way.weight > best[0] and (len(way.terms) == 1 or self.has_run(way.terms)):
                best = way.weight, often
        return best


#: Fields with a chunk's location in its document. In rows, -1 stands for None.
_PLACES = ("ordinal", "char_start", "char_end", "page", "line_start", "line_end")


def pack_edition(document: IndexDocument, edition: str, now_ms: int) -> tuple[Edition, list[str]]:
    """Convert a document to a hidden edition. Also returns the pieces of the edition's body after the first.

    Raises ProviderFailed if Milvus can't store the document.
    """
    text, end, gaps = storable(document.text), 0, []
    for chunk in document.chunks:
        gaps.append(text[end : chunk.char_start])
        end = max(end, chunk.char_end)
    packed = base64.b64encode(zlib.compress(json.dumps([*gaps, text[end:]]).encode())).decode()
    first, *further = [packed[start : start + TEXT_BYTES] for start in range(0, len(packed), TEXT_BYTES)]
    bucket_ids = distinct(document.bucket_ids)
    if len(bucket_ids) > MOST_BUCKETS:
        message = f"{document.source_id} is in {len(bucket_ids)} buckets; an index on Milvus takes {MOST_BUCKETS}."
        raise ProviderFailed(message, retryable=False)
    packed_edition = Edition(
        source_id=document.source_id,
        edition=edition,
        generation=document.generation,
        title=_fitting(document.source_id, "title", document.title),
        language=guess_language(text),
        bucket_ids=bucket_ids,
        chunks=len(document.chunks),
        stamped_ms=now_ms,
        body=first,
        pieces=len(further),
    )
    return packed_edition, further


def pack_chunks(team_id: str, edition: Edition, chunks: Sequence[Chunk]) -> list[Row]:
    """Convert an edition's chunks to rows without vectors. Raises ProviderFailed if a chunk is too large."""
    rows = []
    for chunk in chunks:
        text = _fitting(edition.source_id, f"chunk {chunk.ordinal}", chunk.text)
        headings = json.dumps([storable(heading) for heading in chunk.headings], ensure_ascii=False)
        values = {name: getattr(chunk, name) for name in _PLACES}
        rows.append(
            {
                "id": chunk_row_id(team_id, edition.source_id, edition.edition, chunk.ordinal),
                "team_id": team_id,
                "source_id": edition.source_id,
                "edition": edition.edition,
                "bucket_ids": list(edition.bucket_ids),
                **{name: -1 if value is None else value for name, value in values.items()},
                "headings": _fitting(edition.source_id, f"heading path of chunk {chunk.ordinal}", headings),
                "text": text,
                "terms": pack_terms(edition.title, chunk.headings, text, edition.language),
                "model": "",
            }
        )
    return rows


def unpack_chunk(row: Row) -> Chunk:
    """Convert a row back to its chunk."""
    values: Row = {name: None if row[name] == -1 else row[name] for name in _PLACES}
    return Chunk(text=row["text"], headings=tuple(parse_json(row["headings"])), **values)


def unpack_text(pieces: Sequence[str], chunks: Sequence[Chunk]) -> str:
    """Join a document's text from its chunks and the pieces between them, both in order."""
    gaps = parse_json(zlib.decompress(base64.b64decode("".join(pieces))))
    parts, end = [gaps[0]], 0
    for chunk, gap in zip(chunks, gaps[1:], strict=True):
        # Chunks may overlap: append only what is new.
        start = max(end, chunk.char_start)
        parts += [chunk.text[start - chunk.char_start :], gap]
        end = max(end, chunk.char_end)
    return "".join(parts)


def _fitting(source_id: str, what: str, text: str) -> str:
    """Return the text, encoded for Milvus. Raises ProviderFailed if it is too long."""
    text = storable(text)
    size = len(text.encode())
    if size > TEXT_BYTES:
        message = f"The {what} of {source_id} has {size} bytes; an index on Milvus takes {TEXT_BYTES}."
        raise ProviderFailed(message, retryable=False)
    return text
