"""What a search provider takes, returns and guarantees.

Every method is synchronous and may be called from any number of threads at once. Every write is durable when it
returns, safe to repeat, and all or nothing: a search sees a document as it was before the call or as it is after it,
never half of it. Only the errors of `errors` come out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, NamedTuple, Protocol

from svc_daemon.core.text.chunking import Chunk

#: The parts of a chunk in which a word may occur.
Part = Literal["title", "headings", "text"]

#: What the specification calls the state of a document that the index holds.
STATE_ACTIVE = "STATE_ACTIVE"


class SearchMode(StrEnum):
    """How a query is matched."""

    #: By the words of the query.
    KEYWORD = "keyword"
    #: By meaning, through vectors.
    SEMANTIC = "semantic"
    #: Both, fused by rank.
    HYBRID = "hybrid"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexDocument:
    """One source, read and cut, as it goes into the index."""

    source_id: str
    #: Grows with each reading of the source; a later generation replaces an earlier one.
    generation: int
    title: str
    #: The whole extracted text.
    text: str
    #: In order; the ordinals count from 0 without a gap.
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentState:
    """What the index holds of one source, read from the index itself."""

    #: `STATE_ACTIVE`: a document that is there can be found.
    state: str
    #: Names this generation of the document in the index.
    document_id: str
    generation: int
    #: How many chunks can be found.
    chunks: int
    #: Sorted.
    bucket_ids: tuple[str, ...]


class ListedDocument(NamedTuple):
    """One line of an index's list of contents."""

    source_id: str
    generation: int
    #: Sorted.
    bucket_ids: tuple[str, ...]
    #: How many chunks the document has.
    chunks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredChunk:
    """A chunk and its id."""

    chunk_id: str
    chunk: Chunk


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredText:
    """The extracted text of a source, as the index holds it."""

    generation: int
    title: str
    text: str
    #: In order.
    chunks: tuple[StoredChunk, ...]


class ChunkText(NamedTuple):
    """A chunk that a model is to read."""

    chunk_id: str
    #: Title, headings and text, ready to embed.
    text: str


class VectorCount(NamedTuple):
    """How many of some chunks a model has embedded."""

    #: Chunks that have no vector of the model yet.
    missing: int
    #: Chunks in all.
    chunks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryVector:
    """The vector of a query."""

    #: Names model and generation: vectors of another one are never compared with this.
    model: str
    #: Numbers of 4 bytes, little-endian; the vector has length 1.
    values: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """A question to one team's index."""

    #: As the user typed it; nothing in it is syntax.
    text: str
    #: Only documents in one of these buckets; None is the whole team, empty is nothing.
    bucket_ids: Sequence[str] | None = None
    #: Only these sources; None is any, empty is nothing.
    source_ids: Sequence[str] | None = None
    #: Hits wanted, 1 or more.
    limit: int = 10
    #: Hits to skip first.
    offset: int = 0
    mode: SearchMode = SearchMode.HYBRID
    #: Without one every mode goes by keyword.
    vector: QueryVector | None = None
    #: Whether hits list the parts of a chunk in which its words occur.
    explain: bool = False
    #: Instant of the monotonic clock, in seconds, after which the search is interrupted; None is never.
    deadline_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TermMatch:
    """A word of the query that a hit has, and what it weighs."""

    term: str
    #: Inverse document frequency: the rarer the word is among the team's chunks, the higher.
    idf: float
    #: Where it occurs: of `title`, `headings` and `text`; empty unless the query asked to explain.
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeywordMatch:
    """A hit's place in the order by words."""

    #: From 1.
    rank: int
    #: The more the better.
    bm25: float
    #: 0 to 1: how similar its words are to those of the best hits by BM25; None where this was not used.
    feedback: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticMatch:
    """How near a hit is in meaning."""

    #: Place in the order by meaning, from 1; None for one that came by its words and is not among the nearest.
    rank: int | None
    #: Between the query's vector and the chunk's, -1 to 1.
    cosine: float
    #: The model of both vectors.
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A chunk that matches, and why."""

    chunk_id: str
    source_id: str
    generation: int
    #: Every bucket of the document in the index, sorted.
    bucket_ids: tuple[str, ...]
    #: Text, ordinal and place: page, lines, characters, headings.
    chunk: Chunk
    #: 0 to 1, comparable between searches of one mode. Keyword: the coverage. Semantic: the cosine, not below 0.
    #: Hybrid: the mean of both; of a chunk without a vector, the coverage.
    score: float
    #: Place in the whole order, from 1, skipped hits counted.
    rank: int
    #: The words found, in the order of the query.
    matches: tuple[TermMatch, ...]
    #: 0 to 1, the share of the query's idf that these carry.
    coverage: float
    #: None where it is not among the best by words.
    keyword: KeywordMatch | None
    #: None where the search went by keyword, or the chunk has no vector.
    semantic: SemanticMatch | None
    #: The score of a hybrid order, the higher the better; None in other modes.
    fused: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HitPage:
    """The hits asked for, best first. Equal ones keep their order from call to call."""

    hits: tuple[Hit, ...] = ()
    #: Whether there are further hits.
    has_more: bool = False
    #: How the query was actually matched.
    mode: SearchMode = SearchMode.KEYWORD
    #: Sentences for the user about what the search could not do.
    warnings: tuple[str, ...] = ()
    #: How many chunks the team has: the idf of the words comes from these.
    chunks: int = 0


class SearchProvider(Protocol):
    """An index per team. What one team puts, no call for another team sees."""

    def put_document(self, team_id: str, document: IndexDocument, bucket_ids: Sequence[str]) -> None:
        """Make `document` findable in these buckets, in place of any earlier generation of its source.

        The generation that the index already holds, or an older one, changes nothing, neither text nor buckets: so a
        worker that was thought dead can't undo later work.
        """

    def set_buckets(self, team_id: str, source_id: str, generation: int, bucket_ids: Sequence[str]) -> None:
        """Make the document a member of exactly these buckets. Costs only a read where it is so already.

        Raises DocumentMissing where the index doesn't hold this generation.
        """

    def set_title(self, team_id: str, source_id: str, title: str) -> None:
        """Give the document another title, under which it is found from now on. Raises DocumentMissing."""

    def delete_document(self, team_id: str, source_id: str) -> None:
        """Remove the document, whatever its generation, with its vectors. One that isn't there is fine."""

    def get_document(self, team_id: str, source_id: str) -> DocumentState | None:
        """The document's state in the index, or None where it isn't there."""

    def get_text(self, team_id: str, source_id: str) -> StoredText | None:
        """The document's text and chunks, or None where it isn't there."""

    def list_documents(self, team_id: str) -> Iterator[ListedDocument]:
        """Every document of the team by source id. What changes while the caller reads on may be missed or seen."""
        ...

    def search(self, team_id: str, query: SearchQuery) -> HitPage:
        """The chunks that match, best first; of a team or bucket that holds nothing, an empty page.

        Raises SearchTimeout at the query's deadline; the work is interrupted, not left running.
        """
        ...

    def warm_up(self, team_id: str, model: str, bucket_ids: Sequence[str]) -> None:
        """Load what the first search by meaning in these buckets would read, into at most half of the memory for it."""

    def list_unembedded(self, team_id: str, model: str, limit: int) -> list[ChunkText]:
        """Up to `limit` chunks that have no vector of this model, oldest documents first. Empty: there are none."""
        ...

    def put_vectors(self, team_id: str, model: str, vectors: Sequence[tuple[str, bytes]]) -> None:
        """Make these chunks findable by meaning: ids, each with a vector as in `QueryVector`; some hundreds at a time.

        A chunk has one vector, the last that was put. Deleted chunks are skipped. A vector stays with its chunk
        when the document's buckets or title change, and goes with it. Raises ProviderFailed where a vector is not of
        the length that the model's others have.
        """

    def count_unembedded(self, team_id: str, model: str, bucket_ids: Sequence[str] | None = None) -> VectorCount:
        """How many chunks of these buckets, each counted once, have no vector of this model; None is the whole team."""
        ...

    def drop_vectors(self, team_id: str, keep_model: str | None) -> None:
        """Remove the vectors of every model but this one; None removes all."""

    def list_teams(self) -> list[str]:
        """The teams that have an index, known to the state or not."""

    def delete_team(self, team_id: str) -> None:
        """Remove the team's whole index. One that isn't there is fine.

        Calls for this team that run at the same time may fail with a retryable error; what is put afterwards goes
        into a new index.
        """

    def close(self) -> None:
        """Finish the writes in progress and close all files. Nothing may be called after it."""


def document_id(source_id: str, generation: int) -> str:
    """Such as `doc_01k2…_3`: the same for one generation of a source, however often its index is rebuilt."""
    return f"doc_{source_id.removeprefix('src_')}_{generation}"


def chunk_id(source_id: str, generation: int, ordinal: int) -> str:
    """Such as `chk_01k2…_3_17`: the same for one chunk, however often its index is rebuilt."""
    return f"chk_{source_id.removeprefix('src_')}_{generation}_{ordinal}"


def parse_chunk_id(name: str) -> tuple[str, int, int]:
    """Source id, generation and ordinal of a chunk, from an id that `chunk_id` made."""
    source, generation, ordinal = name.removeprefix("chk_").rsplit("_", 2)
    return f"src_{source}", int(generation), int(ordinal)
