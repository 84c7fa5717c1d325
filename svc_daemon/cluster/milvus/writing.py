"""Stores, changes and removes documents in Milvus. Each change writes a new version (see `editions`)."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from svc_daemon.cluster.milvus import chunks, editions
from svc_daemon.cluster.milvus.chunks import HIT_FIELDS
from svc_daemon.cluster.milvus.editions import Edition, last_shown
from svc_daemon.cluster.milvus.packing import pack_chunks, pack_edition, unpack_chunk
from svc_daemon.cluster.milvus.schema import Row, chunk_row_id
from svc_daemon.cluster.milvus.server import MilvusServer
from svc_daemon.provider.contract import IndexDocument
from svc_daemon.provider.errors import DocumentMissing, ProviderFailed

#: Maximum number of attempts at a change, if other nodes change the same document at the same time.
ATTEMPTS = 8
#: After a conflict, wait a random time: up to this many seconds, times the number of failed attempts.
PAUSE_S = 0.1
_VECTOR_FIELDS = ("ordinal", "model", "vector")


@dataclass(frozen=True, slots=True)
class Stamps:
    """Makes the names of editions (versions of documents), from the time and a random number."""

    #: Returns the time in nanoseconds since 1970.
    now_ns: Callable[[], int]
    #: Returns 32 random bits, to distinguish editions that are written at the same time.
    random_bits: Callable[[], int]

    def name(self, generation: int, known: Iterable[Edition] = ()) -> str:
        """Name a new edition. Names sort by generation, then by time.

        The name sorts after all `known` editions of its generation, even if another node's clock is ahead.
        """
        times_ns = [int(each.edition.split("-")[1]) for each in known if each.generation == generation]
        now_ns = max([self.now_ns(), *(time_ns + 1 for time_ns in times_ns)])
        return f"{generation:010}-{now_ns:020}-{self.random_bits():08x}"

    def now_ms(self) -> int:
        return self.now_ns() // 1_000_000


def put(server: MilvusServer, stamps: Stamps, team_id: str, documents: Sequence[IndexDocument]) -> set[str]:
    """Store the newest given generation of each document, unless searches already find that generation or a newer one.

    Returns the ids of sources for which nothing was stored.
    """
    latest: dict[str, IndexDocument] = {}
    for document in documents:
        earlier = latest.get(document.source_id)
        if earlier is None or earlier.generation < document.generation:
            latest[document.source_id] = document
    known = editions.find(server, team_id, latest)
    drafts: list[Edition] = []
    rows: list[Row] = []
    pieces: dict[str, list[str]] = {}
    for source_id, document in latest.items():
        shown = last_shown(known.get(source_id, ()))
        if shown is None or shown.generation < document.generation:
            edition = stamps.name(document.generation, known.get(source_id, ()))
            draft, further = pack_edition(document, edition, stamps.now_ms())
            drafts.append(draft)
            rows += pack_chunks(team_id, draft, document.chunks)
            pieces[draft.edition] = further
    skipped = latest.keys() - {draft.source_id for draft in drafts}
    if not drafts:
        return skipped
    editions.announce(server, team_id, drafts, pieces)
    server.insert(server.collections.chunks, rows)
    return skipped | _show(server, stamps, team_id, drafts)


def set_buckets(
    server: MilvusServer, stamps: Stamps, team_id: str, source_id: str, generation: int, bucket_ids: tuple[str, ...]
) -> None:
    """Set the document's buckets; do nothing if it already has these buckets. Raises DocumentMissing."""

    def revise(shown: Edition) -> Edition:
        if shown.generation != generation:
            raise DocumentMissing(source_id, generation)
        return replace(shown, bucket_ids=bucket_ids)

    try:
        _change(server, stamps, team_id, source_id, revise)
    except DocumentMissing:
        raise DocumentMissing(source_id, generation) from None


def set_title(server: MilvusServer, stamps: Stamps, team_id: str, source_id: str, title: str) -> None:
    """Set the document's title; do nothing if it already has this title. Raises DocumentMissing."""
    _change(server, stamps, team_id, source_id, lambda shown: replace(shown, title=title))


def delete(server: MilvusServer, stamps: Stamps, team_id: str, source_id: str) -> None:
    """Remove every edition of the document, including editions that are being written."""
    while known := editions.find(server, team_id, [source_id]).get(source_id):
        shown = last_shown(known)
        # Remove the others first. Otherwise, hiding the shown edition would make an earlier one visible.
        editions.remove(server, team_id, [each for each in known if each != shown])
        if shown is not None:
            editions.set_shown(server, team_id, [shown], False, stamps.now_ms())
            editions.remove(server, team_id, [shown])


def _show(server: MilvusServer, stamps: Stamps, team_id: str, drafts: Sequence[Edition]) -> set[str]:
    """Make the new editions visible to searches, and remove the editions that they replace.

    A new edition that is overtaken by a later one, or whose document was deleted, is removed instead. Returns the
    source ids of overtaken editions.
    """
    known = editions.find(server, team_id, (draft.source_id for draft in drafts))
    winners: list[Edition] = []
    overtaken: set[str] = set()
    for draft in drafts:
        of_source = known.get(draft.source_id, [])
        shown = last_shown(of_source)
        if shown is not None and shown.edition > draft.edition:
            overtaken.add(draft.source_id)
        elif any(each.edition == draft.edition for each in of_source):
            winners.append(draft)
    if winners:
        editions.set_shown(server, team_id, winners, True, stamps.now_ms())
    replaced = [each for draft in winners for each in known[draft.source_id] if each.edition < draft.edition]
    editions.remove(server, team_id, [*replaced, *(draft for draft in drafts if draft not in winners)])
    return overtaken


def _change(
    server: MilvusServer, stamps: Stamps, team_id: str, source_id: str, revise: Callable[[Edition], Edition]
) -> None:
    """Replace the shown edition by a revised copy. After a conflict with another node, start again.

    Each node shows its copy before it checks for others, so at least one of two nodes sees the conflict and removes
    its own. Raises DocumentMissing.
    """
    for attempt in range(ATTEMPTS):
        time.sleep(attempt * PAUSE_S * stamps.random_bits() / 2**32)
        known = editions.find(server, team_id, [source_id]).get(source_id, [])
        shown = last_shown(known)
        if shown is None:
            raise DocumentMissing(source_id)
        revised = revise(shown)
        if revised == shown:
            return
        edition = stamps.name(shown.generation, known)
        draft = _copy(server, team_id, shown, replace(revised, edition=edition, is_shown=False))
        if draft is None:
            continue
        editions.set_shown(server, team_id, [draft], True, stamps.now_ms())
        now_there = editions.find(server, team_id, [source_id]).get(source_id, [])
        if _names_shown(now_there) == {*_names_shown(known), draft.edition}:
            editions.remove(server, team_id, [each for each in now_there if each.edition < draft.edition])
            return
        editions.set_shown(server, team_id, [draft], False, stamps.now_ms())
        editions.remove(server, team_id, [draft])
    raise ProviderFailed(f"{source_id} is being changed by others; try again.", retryable=True)


def _copy(server: MilvusServer, team_id: str, origin: Edition, draft: Edition) -> Edition | None:
    """Copy an edition's contents to the new edition `draft`.

    Returns None if the original was removed meanwhile.
    """
    body, *further = editions.read_pieces(server, team_id, origin) or [""]
    draft = replace(draft, body=body)
    editions.announce(server, team_id, [draft], {draft.edition: further})
    models: dict[int, str] = {}
    for page in chunks.read_edition(server, server.collections.chunks, team_id, origin, (*HIT_FIELDS, "model")):
        models |= {row["ordinal"]: row["model"] for row in page}
        rows = pack_chunks(team_id, draft, [unpack_chunk(row) for row in page])
        server.insert(server.collections.chunks, [{**row, "model": models[row["ordinal"]]} for row in rows])
    for collection in server.list_vector_collections():
        for page in chunks.read_edition(server, collection, team_id, origin, _VECTOR_FIELDS):
            rows = [vector_row(team_id, draft, row["ordinal"], row["model"], row["vector"]) for row in page]
            server.insert(collection, rows)
    if body and len(further) == origin.pieces and len(models) == origin.chunks:
        return draft
    editions.remove(server, team_id, [draft])
    return None


def _names_shown(of_source: Sequence[Edition]) -> set[str]:
    return {each.edition for each in of_source if each.is_shown}


def vector_row(team_id: str, edition: Edition, ordinal: int, model: str, vector: Sequence[float]) -> Row:
    """Build the row for a chunk's vector."""
    return {
        "id": chunk_row_id(team_id, edition.source_id, edition.edition, ordinal),
        "team_id": team_id,
        "source_id": edition.source_id,
        "edition": edition.edition,
        "bucket_ids": list(edition.bucket_ids),
        "ordinal": ordinal,
        "model": model,
        "vector": list(vector),
    }
