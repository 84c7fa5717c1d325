"""The interface of a search provider: its parameters, results and guarantees.

Every method is synchronous and thread-safe. Every write is durable when it returns, idempotent, and atomic for each
document: a search finds a document as it was before the call or after it, never a mix of both. Methods raise only the
exceptions in `errors`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, NamedTuple, Protocol

from svc_daemon.core.text.chunking import Chunk

#: The parts of a chunk in which a word can occur.
Part = Literal["title", "headings", "text"]

#: The specification's name for the state of a document in the index.
STATE_ACTIVE = "STATE_ACTIVE"


class SearchMode(StrEnum):
    """How a search matches: by words, by meaning, or by both."""

    #: Full-text search for the words of the query.
    KEYWORD = "keyword"
    #: Vector search for the meaning of the query.
    SEMANTIC = "semantic"
    #: Both searches; their rankings are fused.
    HYBRID = "hybrid"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexDocument:
    """A source's extracted text, split into chunks, to be indexed in its buckets."""

    source_id: str
    #: Increases with each extraction of the source; a later generation replaces an earlier one.
    generation: int
    title: str
    #: The whole extracted text.
    text: str
    #: The document's chunks in order; their ordinals are contiguous and begin at 0.
    chunks: tuple[Chunk, ...]
    bucket_ids: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentState:
    """What the index contains of a source's document."""

    #: Always `STATE_ACTIVE`, because every document in the index can be found.
    state: str
    #: Id of the document. Each generation (extraction) of a source has its own id.
    document_id: str
    generation: int
    #: Number of chunks of the document.
    chunks: int
    #: Ids of the document's buckets, sorted.
    bucket_ids: tuple[str, ...]


class ListedDocument(NamedTuple):
    """An entry in the list of an index's documents."""

    source_id: str
    generation: int
    #: Ids of the document's buckets, sorted.
    bucket_ids: tuple[str, ...]
    #: Number of the document's chunks.
    chunks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredChunk:
    """A chunk and its id."""

    chunk_id: str
    chunk: Chunk


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredText:
    """The extracted text of a source and its chunks, as stored in the index."""

    generation: int
    title: str
    text: str
    #: The document's chunks, ordered by ordinal.
    chunks: tuple[StoredChunk, ...]


class ChunkText(NamedTuple):
    """The text of a chunk that is to be embedded."""

    chunk_id: str
    #: Title, headings and text, ready to embed.
    text: str


class VectorCount(NamedTuple):
    """The number of chunks, and how many of them have no vector."""

    #: Number of chunks that have no vector of the model yet.
    missing: int
    #: Number of all chunks, with or without a vector.
    chunks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryVector:
    """The vector of a query, and the model that computed it."""

    #: Identifies the model and its version; only vectors of the same model are compared.
    model: str
    #: 32-bit floats, little-endian; the vector is normalized to length 1.
    values: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """A query to one team's index."""

    #: The query as the user typed it; it has no syntax.
    text: str
    #: Search only documents in one of these buckets; None means all, empty means none.
    bucket_ids: Sequence[str] | None = None
    #: Search only these sources; None means all, empty means none.
    source_ids: Sequence[str] | None = None
    #: Maximum number of hits, at least 1.
    limit: int = 10
    #: Number of hits to skip.
    offset: int = 0
    mode: SearchMode = SearchMode.HYBRID
    #: The query's vector; if None, only keywords are searched, whatever the mode.
    vector: QueryVector | None = None
    #: Whether hits list the parts of the chunk in which each word occurs.
    explain: bool = False
    #: Monotonic time, in seconds, after which the search is interrupted; None means no deadline.
    deadline_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TermMatch:
    """A word of the query that occurs in a hit, and its weight."""

    term: str
    #: Inverse document frequency: the rarer the word is among the team's chunks, the higher.
    idf: float
    #: Where it occurs: `title`, `headings`, `text`; empty unless the query has `explain`.
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeywordMatch:
    """A hit's rank and score in the keyword search."""

    #: Position in the keyword ranking, from 1.
    rank: int
    #: The BM25 score; higher is better.
    bm25: float
    #: 0 to 1: how similar the hit's words are to those of the best hits by BM25; None if this was not computed.
    feedback: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticMatch:
    """A hit's similarity to the query in meaning."""

    #: Position in the semantic ranking, from 1; None if only the keyword search found the hit.
    rank: int | None
    #: Cosine similarity of the query's and the chunk's vectors, -1 to 1.
    cosine: float
    #: The model that computed both vectors.
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A chunk that matches the query, with its scores."""

    chunk_id: str
    source_id: str
    generation: int
    #: Ids of all buckets of the document in the index, sorted.
    bucket_ids: tuple[str, ...]
    #: The chunk's text, its ordinal, and its location (page, lines, characters, headings).
    chunk: Chunk
    #: 0 to 1, comparable between searches of the same mode. Keyword: `coverage`. Semantic: the cosine, or 0 if it is
    #: negative. Hybrid: the mean of both, or the coverage if the chunk has no vector.
    score: float
    #: Position in the ranking, from 1, including skipped hits.
    rank: int
    #: The query words that the chunk contains, in the order of the query.
    matches: tuple[TermMatch, ...]
    #: 0 to 1: how much of the query the chunk covers. It is the sum of the idf of the words in `matches`, divided by
    #: the sum for all words of the query.
    coverage: float
    #: The chunk's match in the keyword search; None if the chunk is not among the best matches of that search.
    keyword: KeywordMatch | None
    #: The chunk's match in the semantic search; None if this was a keyword search, or if the chunk has no vector.
    semantic: SemanticMatch | None
    #: The score that combines both rankings in a hybrid search, higher is better; None in other modes.
    fused: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HitPage:
    """The requested hits, best first. Hits with the same score have the same order in every call."""

    hits: tuple[Hit, ...] = ()
    #: Whether there are hits after this page.
    has_more: bool = False
    #: The mode that was actually used.
    mode: SearchMode = SearchMode.KEYWORD
    #: Warnings for the user, in full sentences, about what the search could not do.
    warnings: tuple[str, ...] = ()
    #: The total number of the team's chunks, from which idf is computed.
    chunks: int = 0


class SearchProvider(Protocol):
    """Stores and searches documents, in a separate index for each team."""

    def put_documents(self, team_id: str, documents: Sequence[IndexDocument]) -> set[str]:
        """Index these documents, in order, each replacing any earlier extraction of its source.

        A document is skipped if the index already has its generation or a later one, so that a worker whose lease has
        expired can't undo later work. Returns the ids of the sources for which nothing was indexed.

        All documents are durable when this returns. If it raises an error, some of the documents may have been indexed
        completely and the others not at all; the call can be repeated.
        """

    def set_buckets(self, team_id: str, source_id: str, generation: int, bucket_ids: Sequence[str]) -> None:
        """Set the document's buckets; writes nothing if it already has exactly these buckets.

        Raises DocumentMissing if the index doesn't have this generation.
        """

    def set_title(self, team_id: str, source_id: str, title: str) -> None:
        """Change the document's title, and index the words of the new one. Raises DocumentMissing."""

    def delete_document(self, team_id: str, source_id: str) -> None:
        """Remove the source's document, of whatever generation, and its vectors. Does nothing if there is none."""

    def get_document(self, team_id: str, source_id: str) -> DocumentState | None:
        """Return the document's state in the index; None if it isn't there."""

    def get_text(self, team_id: str, source_id: str) -> StoredText | None:
        """Return the document's text and chunks; None if it isn't there."""

    def list_documents(self, team_id: str) -> Iterator[ListedDocument]:
        """List the team's documents, sorted by source id. Changes during the iteration may or may not be included."""
        ...

    def search(self, team_id: str, query: SearchQuery) -> HitPage:
        """Return the matching chunks, best first; an empty page if the team or bucket has no documents.

        Raises SearchTimeout at the query's deadline; the search does not continue in the background.
        """
        ...

    def warm_up(self, team_id: str, model: str, bucket_ids: Sequence[str]) -> None:
        """Load the vectors for semantic searches in these buckets into the cache, filling at most half of it."""

    def list_unembedded(self, team_id: str, model: str, limit: int) -> list[ChunkText]:
        """List up to `limit` chunks without a vector of this model, oldest documents first; empty if there are none."""
        ...

    def put_vectors(self, team_id: str, model: str, vectors: Sequence[tuple[str, bytes]]) -> None:
        """Store vectors by chunk id, encoded as in `QueryVector`. Intended for batches of a few hundred.

        A chunk has at most one vector, the last one stored. Deleted chunks are skipped. A chunk keeps its vector if the
        document's buckets or title change; the vector is deleted with its chunk. Raises ProviderFailed if a vector's
        length differs from that of the model's other vectors.
        """

    def get_vectors(self, team_id: str, source_id: str, model: str) -> dict[str, bytes]:
        """Return the stored vectors of this model for the source's chunks, by chunk id."""
        ...

    def count_unembedded(self, team_id: str, model: str, bucket_ids: Sequence[str] | None = None) -> VectorCount:
        """Count the chunks in these buckets (None: all), and those of them that have no vector of this model.

        A chunk in several of the buckets is counted once.
        """
        ...

    def drop_vectors(self, team_id: str, keep_model: str | None) -> None:
        """Remove all vectors of the team except those of `keep_model`; if it is None, remove all."""

    def list_teams(self) -> list[str]:
        """List the teams that have an index, including teams that the state database doesn't contain."""

    def delete_team(self, team_id: str) -> None:
        """Remove the team's whole index. Does nothing if there is none.

        Concurrent calls for this team may fail with a retryable error; later writes go into a new index.
        """

    def check_reachable(self) -> None:
        """Raise ProviderError if the index is on another machine that does not answer."""

    def close(self) -> None:
        """Finish the writes in progress and close all files. No method may be called afterwards."""


def document_id(source_id: str, generation: int) -> str:
    """Build an id such as `doc_01k2…_3`, which stays the same if the index is rebuilt."""
    return f"doc_{source_id.removeprefix('src_')}_{generation}"


def chunk_id(source_id: str, generation: int, ordinal: int) -> str:
    """Build an id such as `chk_01k2…_3_17`, which stays the same if the index is rebuilt."""
    return f"chk_{source_id.removeprefix('src_')}_{generation}_{ordinal}"


def parse_chunk_id(name: str) -> tuple[str, int, int]:
    """Split an id made by `chunk_id` into source id, generation and ordinal."""
    source, generation, ordinal = name.removeprefix("chk_").rsplit("_", 2)
    return f"src_{source}", int(generation), int(ordinal)
