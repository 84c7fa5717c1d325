"""Converts documents to rows with the word stems that Milvus indexes, and back.

Words with characters other than ASCII letters and digits are encoded, so that Milvus doesn't change them.

Milvus's text fields are short, so a text is stored as its chunks and its body, the text between chunks.
"""

import base64
import json
import unicodedata
import zlib
from collections.abc import Iterable, Sequence
from functools import lru_cache

from svc_daemon.cluster.milvus.editions import Edition
from svc_daemon.cluster.milvus.schema import MOST_BUCKETS, TEXT_BYTES, Row, chunk_row_id
from svc_daemon.core.text.chunking import Chunk
from svc_daemon.core.text.words import porter_stem, split_words
from svc_daemon.provider.contract import IndexDocument
from svc_daemon.provider.errors import ProviderFailed
from svc_daemon.provider.ranked_chunks import distinct, storable
from svc_daemon.wire.parsing import parse_json

#: How many times a word in the title counts, as in the SQLite index.
TITLE_WEIGHT = 2
#: Prefix of words that are encoded in hexadecimal. No English word begins with it.
_ENCODED = "0q"
_ACCENTS = range(0x300, 0x370)
#: Maximum number of cached stems. This is enough for the common words, which make up most of a document.
MOST_CACHED = 50_000


@lru_cache(MOST_CACHED)
def stem(word: str) -> str:
    """Return the stem under which a lowercase word is indexed. It has only ASCII letters and digits."""
    if not word.isascii():
        decomposed = unicodedata.normalize("NFD", word)
        word = unicodedata.normalize("NFC", "".join(each for each in decomposed if ord(each) not in _ACCENTS))
    stemmed = porter_stem(word)
    return stemmed if stemmed.isascii() and stemmed.isalnum() else _ENCODED + stemmed.encode(errors="replace").hex()


def list_stems(text: str) -> list[str]:
    """List the stems of the text's words, in order."""
    return [stem(word) for word in split_words(text)]


def pack_stems(title_stems: Iterable[str], headings: Iterable[str], text: str) -> str:
    """Join the stems of a chunk's title, headings and text, cut to the field's size."""
    packed = " ".join([*[*title_stems] * TITLE_WEIGHT, *list_stems(" ".join([*headings, text]))])
    return packed if len(packed) <= TEXT_BYTES else packed[:TEXT_BYTES].rpartition(" ")[0]


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
        bucket_ids=bucket_ids,
        chunks=len(document.chunks),
        stamped_ms=now_ms,
        body=first,
        pieces=len(further),
    )
    return packed_edition, further


def pack_chunks(team_id: str, edition: Edition, chunks: Sequence[Chunk]) -> list[Row]:
    """Convert an edition's chunks to rows without vectors. Raises ProviderFailed if a chunk is too large."""
    title_stems = list_stems(edition.title)
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
                "stems": pack_stems(title_stems, chunk.headings, text),
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
