"""The interface of a search provider: its parameters, results, guarantees and inspection.

Every method is synchronous and thread-safe, and raises only the exceptions in `errors`. Every write is durable when it
returns, can be repeated, and is atomic for each document.

An inspection changes nothing, and reports damage instead of raising an error.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, NamedTuple, Protocol

from svc_daemon.core.problems import Problem
from svc_daemon.core.text.chunking import Chunk

#: The parts of a chunk in which a word can occur.
Part = Literal["title", "headings", "text"]

#: The only state of a document in an index.
STATE_ACTIVE = "STATE_ACTIVE"


class SearchMode(StrEnum):
    """How a search matches: by words, by meaning, or by both."""

    #: Search for the words of the query.
    KEYWORD = "keyword"
    #: Search for the meaning of the query, by vectors.
    SEMANTIC = "semantic"
    #: Do both searches, and merge their rankings.
    HYBRID = "hybrid"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexDocument:
    """A source's extracted text, split into chunks."""

    source_id: str
    #: Increases with each extraction; a later generation replaces an earlier one.
    generation: int
    title: str
    #: The whole extracted text.
    text: str
    #: The chunks in order, with ordinals from 0.
    chunks: tuple[Chunk, ...]
    bucket_ids: Sequence[str]
    #: The title in the text, if it has one.
    own_title: str = ""
    tags: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentState:
    """The state of a source's document in the index."""

    #: Always `STATE_ACTIVE`: every document in the index can be found.
    state: str
    #: Each generation of a source has its own document id.
    document_id: str
    generation: int
    #: Number of chunks.
    chunks: int
    #: The document's buckets, sorted.
    bucket_ids: tuple[str, ...]


class ListedDocument(NamedTuple):
    """One of the documents that `list_documents` returns."""

    source_id: str
    generation: int
    #: The document's buckets, sorted.
    bucket_ids: tuple[str, ...]
    #: Number of chunks.
    chunks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredChunk:
    """A chunk and its id."""

    chunk_id: str
    chunk: Chunk


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredText:
    """A source's extracted text and chunks, as stored in the index."""

    generation: int
    title: str
    text: str
    #: The chunks, in the order of the text.
    chunks: tuple[StoredChunk, ...]


class ChunkText(NamedTuple):
    """The text of a chunk that is to be embedded."""

    chunk_id: str
    #: Title, headings and text, ready to embed.
    text: str


class VectorCount(NamedTuple):
    """Numbers of chunks with and without vectors."""

    #: Number of chunks without a vector of the model.
    missing: int
    #: Number of all chunks.
    chunks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryVector:
    """The vector of a query, and the model that computed it."""

    #: Model and version; only vectors of the same model are compared.
    model: str
    #: Little-endian 32-bit floats; the vector has length 1.
    values: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """A query to one team's index."""

    #: The words to search for. No character has a special meaning.
    text: str
    #: Search only these buckets; None means all, empty means none.
    bucket_ids: Sequence[str] | None = None
    #: Search only these sources; None means all, empty means none.
    source_ids: Sequence[str] | None = None
    #: How rare a word is, only these buckets decide, as if there were no others; None means all of the team.
    counted_in: Sequence[str] | None = None
    #: Maximum number of hits, at least 1.
    limit: int = 10
    #: Number of hits to skip.
    offset: int = 0
    mode: SearchMode = SearchMode.HYBRID
    #: The query's vector. Without it, only keywords are searched.
    vector: QueryVector | None = None
    #: Whether hits show in which parts of the chunk each word occurs.
    explain: bool = False
    #: Monotonic time, in seconds, at which the search is interrupted, or None.
    deadline_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TermMatch:
    """A query word that occurs in a hit, and its weight."""

    term: str
    #: Inverse document frequency: the rarer the word, the higher.
    idf: float
    #: Parts of the chunk that contain the word; empty unless the query has `explain`.
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeywordMatch:
    """A hit's rank and score in the keyword search."""

    #: Position in the keyword ranking, from 1.
    rank: int
    #: The BM25 score; higher is better.
    bm25: float
    #: How similar the hit's words are to those of the best hits, 0 to 1; None if not computed.
    feedback: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticMatch:
    """A hit's similarity to the query in meaning."""

    #: Position in the semantic ranking, from 1, or None if not ranked.
    rank: int | None
    #: Cosine similarity of query and chunk, -1 to 1.
    cosine: float
    #: The model that computed the vectors of query and chunk.
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A chunk that matches the query, with its scores."""

    chunk_id: str
    source_id: str
    generation: int
    #: All buckets of the document, sorted.
    bucket_ids: tuple[str, ...]
    #: The chunk's text and location.
    chunk: Chunk
    #: From 0 to 1. In a keyword search, `coverage`; in a semantic search, the cosine, but at least 0; in a hybrid
    #: search, their mean, or `coverage` if the chunk has no vector.
    score: float
    #: Position in the whole ranking, from 1.
    rank: int
    #: The query words in the chunk, in the query's order.
    matches: tuple[TermMatch, ...]
    #: Where these words are in the chunk's text: start and end of each, in order, without overlaps.
    highlights: tuple[tuple[int, int], ...] = ()
    #: How much of the query the chunk covers, 0 to 1: the total idf of `matches`, divided by the total idf
    #: of all query words.
    coverage: float
    #: None if the keyword search did not rank the chunk.
    keyword: KeywordMatch | None
    #: None in a keyword search, or if the chunk has no vector.
    semantic: SemanticMatch | None
    #: The merged score of a hybrid search; None in other modes.
    fused: float | None
    #: Whether the query names the document, as by its title. The best chunks of such documents come first.
    is_named: bool = False


class Suggestion(NamedTuple):
    """A word of the query that occurs nowhere, and one that does and may have been meant."""

    word: str
    instead: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HitPage:
    """The requested hits, best first. Hits with equal scores are always in the same order."""

    hits: tuple[Hit, ...] = ()
    #: Whether there are hits after this page.
    has_more: bool = False
    #: The search mode that was used.
    mode: SearchMode = SearchMode.KEYWORD
    #: Sentences for the user about what the search could not do.
    warnings: tuple[str, ...] = ()
    #: Number of the chunks from which idf is computed, the team's or those in `counted_in`.
    chunks: int = 0
    #: For words that stand nowhere in the index: others, of the buckets and sources searched.
    suggestions: tuple[Suggestion, ...] = ()


@dataclass(frozen=True, slots=True)
class Building:
    """How far the words of a team's documents are indexed again, in passages. Searches are refused meanwhile."""

    done: int
    total: int
    #: Seconds since it began.
    elapsed_s: float


class SearchProvider(Protocol):
    """Stores and searches documents, in a separate index for each team."""

    def put_documents(self, team_id: str, documents: Sequence[IndexDocument]) -> set[str]:
        """Index these documents, each replacing any earlier generation.

        Returns the source ids of documents that were skipped, because the index already has their generation or a
        later one. So a worker whose lease has expired can't undo later work.

        All documents are durable when this returns. After an error, some may be indexed and others not; repeat the
        call.
        """

    def set_buckets(self, team_id: str, source_id: str, generation: int, bucket_ids: Sequence[str]) -> None:
        """Set the document's buckets. Raises DocumentMissing if the index has another generation."""

    def set_title(self, team_id: str, source_id: str, title: str, tags: Sequence[str] | None = None) -> None:
        """Change the document's title, and its tags unless they are None. Raises DocumentMissing."""

    def delete_document(self, team_id: str, source_id: str) -> None:
        """Remove the source's document and its vectors, if there is one."""

    def get_document(self, team_id: str, source_id: str) -> DocumentState | None:
        """Return the document's state in the index; None if the index doesn't have the document."""

    def get_text(self, team_id: str, source_id: str) -> StoredText | None:
        """Return the document's text and chunks; None if the index doesn't have the document."""

    def list_documents(self, team_id: str) -> Iterator[ListedDocument]:
        """List the team's documents, in the order of their source ids. Changes during the iteration may be missing."""
        ...

    def search(self, team_id: str, query: SearchQuery) -> HitPage:
        """Return the matching chunks, best first.

        Raises SearchTimeout at the query's deadline; the search is stopped then.
        """
        ...

    def warm_up(self, team_id: str, model: str, bucket_ids: Sequence[str]) -> None:
        """Prepare searches of these buckets, by loading vectors of this model into a cache."""

    def list_unembedded(self, team_id: str, model: str, limit: int) -> list[ChunkText]:
        """List up to `limit` chunks without a vector of this model, oldest documents first."""
        ...

    def put_vectors(self, team_id: str, model: str, vectors: Sequence[tuple[str, bytes]]) -> None:
        """Store vectors, given as pairs of chunk id and vector (see `QueryVector`). Pass a few hundred at a time.

        Each chunk has only the vector that was stored last, and keeps it if the document's buckets or title change.
        Deleted chunks are skipped. Raises ProviderFailed if the model's vectors have another length.
        """

    def get_vectors(self, team_id: str, source_id: str, model: str) -> dict[str, bytes]:
        """Return the vectors of this model for the source's chunks, by chunk id."""
        ...

    def count_unembedded(self, team_id: str, model: str, bucket_ids: Sequence[str] | None = None) -> VectorCount:
        """Count the chunks in these buckets (None: all), and those without a vector of this model.

        A chunk in several buckets counts once.
        """
        ...

    def drop_vectors(self, team_id: str, keep_model: str | None) -> None:
        """Remove the team's vectors, except those of `keep_model`."""

    def purge(self, team_id: str) -> bool:
        """Overwrite what deleted documents have left in the team's files, such as words. May take seconds.

        Returns False if nothing was overwritten.
        """
        ...

    def find_building(self, team_id: str) -> Building | None:
        """Return how far the words of the team's documents are indexed again; None if they are searchable."""
        ...

    def list_teams(self) -> list[str]:
        """List the teams that have an index, even if the state database doesn't know them."""

    def delete_team(self, team_id: str) -> None:
        """Remove the team's whole index, if there is one.

        Concurrent calls may fail with a retryable error; later writes create a new index.
        """

    def check_reachable(self) -> None:
        """Raise ProviderError if the index is on a machine that does not answer."""

    def close(self) -> None:
        """Finish the current writes and close all files. No method may be called afterwards."""


def document_id(source_id: str, generation: int) -> str:
    """Build a document's id, such as `doc_01k2…_3`. It stays the same when the index is rebuilt."""
    return f"doc_{source_id.removeprefix('src_')}_{generation}"


def chunk_id(source_id: str, generation: int, ordinal: int) -> str:
    """Build a chunk's id, such as `chk_01k2…_3_17`. It stays the same when the index is rebuilt."""
    return f"chk_{source_id.removeprefix('src_')}_{generation}_{ordinal}"


def parse_chunk_id(name: str) -> tuple[str, int, int]:
    """Split a chunk id into source id, generation and ordinal."""
    source, generation, ordinal = name.removeprefix("chk_").rsplit("_", 2)
    return f"src_{source}", int(generation), int(ordinal)


class InspectedDocument(NamedTuple):
    """A document that searches find."""

    source_id: str
    generation: int
    title: str
    #: The document's buckets, sorted.
    bucket_ids: tuple[str, ...]
    #: Number of chunks.
    chunks: int


class Inspector(Protocol):
    """Inspects the indexes of all teams without changing anything."""

    def list_teams(self) -> list[str]:
        """List the teams that have an index."""
        ...

    def check_index(self, team_id: str, *, read_data: bool) -> list[Problem]:
        """Find problems in the team's index. With `read_data`, also read all texts and words."""
        ...

    def list_documents(self, team_id: str) -> dict[str, InspectedDocument]:
        """Return all documents by source id. Call this only if `check_index` has found no damage."""
        ...
