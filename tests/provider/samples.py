"""Documents and queries that tests of providers are made of."""

import math
import struct

from svc_daemon.core.text.chunking import Chunk
from svc_daemon.provider.contract import Hit, HitPage, IndexDocument, SearchMode, SearchProvider, SearchQuery

TEAM = "team_one"
#: A model whose vectors tests make by hand.
MODEL = "small@1"


def make_document(
    source_id: str,
    *texts: str,
    generation: int = 1,
    title: str = "untitled",
    headings: tuple[str, ...] = (),
    page: int | None = None,
) -> IndexDocument:
    """A document of one chunk for each text, with a blank line between them."""
    chunks, start = [], 0
    for ordinal, text in enumerate(texts):
        chunks.append(
            Chunk(
                ordinal=ordinal,
                text=text,
                char_start=start,
                char_end=start + len(text),
                headings=headings,
                page=page,
                line_start=ordinal * 2 + 1,
                line_end=ordinal * 2 + 1,
            )
        )
        start += len(text) + 2
    return IndexDocument(
        source_id=source_id, generation=generation, title=title, text="\n\n".join(texts), chunks=tuple(chunks)
    )


def search(
    provider: SearchProvider,
    text: str,
    *,
    team_id: str = TEAM,
    bucket_ids: list[str] | None = None,
    source_ids: list[str] | None = None,
    limit: int = 10,
    offset: int = 0,
) -> HitPage:
    query = SearchQuery(
        text=text, bucket_ids=bucket_ids, source_ids=source_ids, limit=limit, offset=offset, mode=SearchMode.KEYWORD
    )
    return provider.search(team_id, query)


def sources(page: HitPage) -> list[str]:
    """The sources of the hits, best first."""
    return [hit.source_id for hit in page.hits]


def terms(hit: Hit) -> list[str]:
    return [match.term for match in hit.matches]


def unit(*numbers: float) -> bytes:
    """A vector in the direction of these numbers, as providers take it."""
    length = math.hypot(*numbers)
    return struct.pack(f"<{len(numbers)}f", *(number / length for number in numbers))
