"""Documents and queries that tests of providers are made of."""

import math
import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from svc_daemon.core.text.chunking import Chunk
from svc_daemon.provider.contract import HitPage, IndexDocument, QueryVector, SearchMode, SearchProvider, SearchQuery
from svc_daemon.provider.errors import IndexBuilding
from tests.acceptance.installations import wait_until

TEAM = "team_one"
Provider = TypeVar("Provider", bound=SearchProvider)
#: A model whose vectors tests make by hand.
MODEL = "small@1"


def make_document(
    source_id: str,
    *texts: str,
    generation: int = 1,
    title: str = "untitled",
    headings: tuple[str, ...] = (),
    page: int | None = None,
    buckets: Sequence[str] = (),
) -> IndexDocument:
    """A document of one chunk for each text, with a blank line between them."""
    chunks, start = [], 0
    for ordinal, text in enumerate(texts):
        line = ordinal * 2 + 1
        chunk = Chunk(ordinal=ordinal, text=text, char_start=start, char_end=start + len(text), headings=headings)
        chunks.append(replace(chunk, page=page, line_start=line, line_end=line))
        start += len(text) + 2
    whole = "\n\n".join(texts)
    return IndexDocument(
        source_id=source_id,
        generation=generation,
        title=title,
        text=whole,
        chunks=tuple(chunks),
        bucket_ids=buckets,
    )


def put(provider: SearchProvider, source_id: str, *texts: str, team_id: str = TEAM, **form: Any) -> IndexDocument:
    """Put a document of these texts; `form` is for `make_document`."""
    document = make_document(source_id, *texts, **form)
    provider.put_documents(team_id, [document])
    return document


def put_each(provider: SearchProvider, **texts: str) -> None:
    """Put a document of one text under each name, into no bucket."""
    provider.put_documents(TEAM, [make_document(source_id, text) for source_id, text in texts.items()])


def search(provider: SearchProvider, text: str, *, team_id: str = TEAM, **fields: Any) -> HitPage:
    """By keyword, unless the fields name another mode."""
    return provider.search(team_id, SearchQuery(text=text, **{"mode": SearchMode.KEYWORD, **fields}))


def found(provider: SearchProvider, text: str, *bucket_ids: str, **fields: Any) -> list[str]:
    """The sources of the hits, best first; in all buckets unless some are named."""
    return sources(search(provider, text, bucket_ids=list(bucket_ids) or None, **fields))


def settled(provider: Provider, team_id: str = TEAM) -> Provider:
    """Wait until the postings are made."""

    def is_searchable() -> bool:
        try:
            search(provider, "fox", team_id=team_id)
        except IndexBuilding:
            return False
        return True

    wait_until(is_searchable, "the postings are made")
    return provider


def near(provider: SearchProvider, text: str, *numbers: float, model: str = MODEL, **fields: Any) -> HitPage:
    """With the vector in the direction of these numbers; by meaning, unless the fields name another mode."""
    vector = QueryVector(model=model, values=unit(*numbers))
    return search(provider, text, vector=vector, **{"mode": SearchMode.SEMANTIC, **fields})


def texts(page: HitPage) -> list[str]:
    """The texts of the hits, best first."""
    return [hit.chunk.text for hit in page.hits]


def sources(page: HitPage) -> list[str]:
    """The sources of the hits, best first."""
    return [hit.source_id for hit in page.hits]


def terms(page: HitPage) -> list[list[str]]:
    """The words that each hit has of the query."""
    return [[match.term for match in hit.matches] for hit in page.hits]


def unit(*numbers: float) -> bytes:
    """A vector in the direction of these numbers, as providers take it."""
    length = math.hypot(*numbers)
    return struct.pack(f"<{len(numbers)}f", *(number / length for number in numbers))
