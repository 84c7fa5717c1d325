"""Sources on the wire (specification, Source): the object on which every upload path converges."""

from typing import Annotated, Any, Literal

from pydantic import Field

from svc_daemon.wire.models import WireModel
from svc_daemon.wire.requests import NoDryRunBody, RequestBody


class TaskReference(WireModel):
    id: str
    type: str
    status: str


class Shortage(WireModel):
    """What the service is short of: work waits until there is enough again, and no attempt is counted."""

    lack: Literal["disk", "disk_reserve", "descriptors", "memory", "processes"]
    message: str
    since: str


class SourceError(WireModel):
    """Why a source ended `failed`: a code of `SourceErrorCode`, a sentence, and whether `retry` can help."""

    code: str
    message: str
    retryable: bool


class ExtractionFacts(WireModel):
    """What was read from the bytes, once indexed."""

    characters: int
    pages: int | None
    pages_without_text: list[int]
    chunks: int
    language: str | None


class ProviderState(WireModel):
    """The live state in the search index, read from the index and not from the row."""

    state: Literal["STATE_PENDING", "STATE_ACTIVE", "STATE_FAILED"]
    document_id: str | None


class Source(WireModel):
    id: str
    object: Literal["knowledge_file"] = "knowledge_file"
    #: `file`, `page` or `qa`.
    type: str
    #: `queued`, `indexing`, `active` or `failed`.
    status: str
    #: The whole readiness contract: indexed, and active in every bucket it belongs to.
    ready: bool
    #: What `ready` waits for besides the source's own indexing and sync: the code that a search answers meanwhile.
    ready_withheld_by: str | None = None
    #: `queued`, `syncing`, `active` or `failed` (which tries itself again).
    bucket_sync_status: str
    title: str
    filename: str
    content_type: str
    size_bytes: int
    sha256: str
    task: TaskReference | None
    tags: list[str]
    metadata: dict[str, Any]
    #: The sync mapping that owns the source, where one does.
    mapping: str | None
    source_url: str | None
    #: Behind all redirects; this and the next four are of what was fetched from a URL.
    final_url: str | None = None
    http_status: int | None = None
    etag: str | None = None
    last_modified: str | None = None
    #: When the host last answered, whether anything had changed or not.
    fetched_at: str | None = None
    #: This and the next two are of a Q and A.
    question: str | None = None
    answer: str | None = None
    alternate_questions: list[str] | None = None
    bucket_ids: list[str]
    #: The source whose place this one takes when it becomes ready.
    replaces: str | None
    error: SourceError | None
    warnings: list[str]
    extraction: ExtractionFacts | None
    created_at: str
    updated_at: str


class SourceAnswer(Source):
    #: What the service is short of, while a source that is not ready waits for it.
    waits_for: Shortage | None = None
    request_id: str


class SourceRefreshed(SourceAnswer):
    """A source after a refresh."""

    #: Whether the content was another, which is being indexed now.
    changed: bool


class SourceVerified(SourceAnswer):
    """A source that was looked up; its state in the index with `?verify=provider` alone."""

    provider: ProviderState | None = None


class SourceMember(Source):
    """A source in a bucket's listing: its state there, in the spelling of bucket views too."""

    bucketSyncStatus: str


class BucketSources(WireModel):
    bucket_id: str
    #: As on the bucket: list again only when it moved.
    revision: int
    sources: list[SourceMember]
    has_more: bool | None = None
    last_id: str | None = None
    request_id: str


class SourceUpdate(NoDryRunBody):
    """Body of `PATCH /v1/sources/{id}`; what is not sent stays."""

    title: str | None = None
    filename: str | None = None
    tags: list[str] | None = None
    metadata: dict[str, Any] | None = None


class SourceAttach(RequestBody):
    """Body of `POST /v1/buckets/{bucket}/sources`."""

    source_id: Annotated[str, Field(min_length=1, max_length=64)]
    dry_run: bool = False


class Deleted(WireModel):
    id: str
    object: Literal["knowledge_file"] = "knowledge_file"
    deleted: Literal[True] = True
    request_id: str


class Detached(WireModel):
    id: str
    object: Literal["knowledge_file"] = "knowledge_file"
    bucket_id: str
    detached: Literal[True] = True
    #: The buckets it still belongs to.
    bucket_ids: list[str]
    request_id: str


class Location(WireModel):
    """A place in the original; what the format doesn't have is null."""

    page: int | None
    line_start: int | None
    line_end: int | None
    char_start: int
    char_end: int
    headings: list[str]


class TextChunk(WireModel):
    chunk_id: str
    text: str
    location: Location


class SourceText(WireModel):
    """The extracted text and the pieces in which search finds it."""

    id: str
    object: Literal["source_text"] = "source_text"
    text: str
    chunks: list[TextChunk]
    request_id: str


class StoredContent(WireModel):
    """The stored bytes, as they are now."""

    #: Of the bytes, in hex; null where they are gone.
    sha256: str | None
    #: They are those that were taken in.
    unchanged: bool
    #: Why no text could be read from them.
    error: SourceError | None


class SourceReread(SourceText):
    """The text as it was read from the stored bytes just now; empty where none could be."""

    content: StoredContent


class DryRun(WireModel):
    """What a create, an attach or a finalize would have done; nothing was stored, counted or claimed."""

    dry_run: Literal[True] = True
    valid: Literal[True] = True
    #: Null where nothing would be made: it is there already, or the request would be a replay.
    would_create: dict[str, Any] | None
    #: What is wrong with parts of the request that would be left out: `path` and `message`.
    errors: list[dict[str, str]] = Field(default_factory=list)
    request_id: str
