"""Types of sources. Made from `svc_daemon.wire` by `python -m tests.rules.client_types`."""

from typing import Any, Literal, NotRequired, TypedDict


class TaskReferenceDict(TypedDict):
    id: str
    type: str
    status: str


class ShortageDict(TypedDict):
    """A resource of which the daemon has too little, such as disk space or memory.

    A task that waits for the resource doesn't use up an attempt.
    """

    lack: Literal["disk", "disk_reserve", "descriptors", "memory", "processes", "store"]
    message: str
    since: str


class SourceErrorDict(TypedDict):
    """Why a source is `failed`, and whether a retry can help. `code` is a `SourceErrorCode`."""

    code: str
    message: str
    retryable: bool


class ExtractionFactsDict(TypedDict):
    """Facts about the extracted text of an indexed source."""

    characters: int
    pages: int | None
    pages_without_text: list[int]
    chunks: int
    language: str | None


class ProviderStateDict(TypedDict):
    """What the search index reports about the source."""

    state: Literal["STATE_PENDING", "STATE_ACTIVE", "STATE_FAILED"]
    document_id: str | None


class SourceDict(TypedDict):
    id: str
    object: Literal["knowledge_file"]
    type: str
    """`file`, `page` or `qa`."""
    status: str
    """`queued`, `indexing`, `active` or `failed`."""
    ready: bool
    """Whether searches in each of the source's buckets find the source."""
    ready_withheld_by: str | None
    """The error code of searches, if a rebuild of the index keeps the source from being `ready`. Otherwise null."""
    bucket_sync_status: str
    """`queued`, `syncing`, `active` or `failed` (which is retried automatically)."""
    title: str
    filename: str
    content_type: str
    size_bytes: int
    sha256: str
    task: TaskReferenceDict | None
    tags: list[str]
    metadata: dict[str, Any]
    mapping: str | None
    """The name of the mapping (a folder that `svc sync` keeps in a bucket) to which the source belongs, if any."""
    source_url: str | None
    final_url: str | None
    """The URL after all redirects. This field and the next four are only set for sources from a URL."""
    http_status: int | None
    etag: str | None
    last_modified: str | None
    fetched_at: str | None
    """When the URL was last fetched successfully, even if its content had not changed."""
    question: str | None
    """This field and the next two are only set for a Q&A source."""
    answer: str | None
    alternate_questions: list[str] | None
    bucket_ids: list[str]
    replaces: str | None
    """Id of an older source, which this source replaces as soon as this source is ready."""
    error: SourceErrorDict | None
    warnings: list[str]
    extraction: ExtractionFactsDict | None
    created_at: str
    updated_at: str


class SourceAnswerDict(SourceDict):
    waits_for: ShortageDict | None
    """The resource that the source waits for, if the daemon has too little of it."""
    request_id: str


class SourceRefreshedDict(SourceAnswerDict):
    """A source after a refresh."""

    changed: bool
    """Whether the content has changed and is being indexed again."""


class SourceVerifiedDict(SourceAnswerDict):
    """A source requested by its id. `provider` is null unless the request has `?verify=provider`."""

    provider: NotRequired[ProviderStateDict]


class SourceMemberDict(SourceDict):
    """A source in a bucket's list. `ready` and `bucket_sync_status` refer to this bucket alone."""

    bucketSyncStatus: str


class BucketSourcesDict(TypedDict):
    bucket_id: str
    revision: int
    """The bucket's `revision`. While the revision is the same, the list is the same."""
    sources: list[SourceMemberDict]
    has_more: NotRequired[bool]
    last_id: NotRequired[str | None]
    request_id: str


class SourceListDict(TypedDict):
    """The sources with the requested ids."""

    sources: list[SourceDict]
    """The existing sources, in the order of the requested ids."""
    missing: list[str]
    """Requested ids for which there is no source."""
    replaced_by: dict[str, str]
    """Maps each missing id to the id of the source that replaced it, if any."""
    request_id: str


class SourceUpdateDict(TypedDict):
    """Body of `PATCH /v1/sources/{id}`; omitted fields are unchanged."""

    title: NotRequired[str | None]
    filename: NotRequired[str | None]
    tags: NotRequired[list[str] | None]
    metadata: NotRequired[dict[str, Any] | None]


class DeletedDict(TypedDict):
    id: str
    object: Literal["knowledge_file"]
    deleted: Literal[True]
    request_id: str


class DetachedDict(TypedDict):
    id: str
    object: Literal["knowledge_file"]
    bucket_id: str
    detached: Literal[True]
    bucket_ids: list[str]
    """Buckets that still contain the source."""
    request_id: str


class LocationDict(TypedDict):
    """A location in the original document. Fields that don't apply to the document's format are null."""

    page: int | None
    line_start: int | None
    line_end: int | None
    char_start: int
    char_end: int
    headings: list[str]


class TextChunkDict(TypedDict):
    chunk_id: str
    text: str
    location: LocationDict


class SourceTextDict(TypedDict):
    """The extracted text, and its chunks for searching."""

    id: str
    object: Literal["source_text"]
    text: str
    chunks: list[TextChunkDict]
    request_id: str


class StoredContentDict(TypedDict):
    """What the service found when it read the source's stored bytes again."""

    sha256: str | None
    """SHA-256 in hexadecimal; null if the bytes are missing."""
    unchanged: bool
    """Whether the stored bytes are the same as the bytes that the service once received."""
    error: SourceErrorDict | None
    """Why no text could be extracted; null if the extraction succeeded."""


class SourceRereadDict(SourceTextDict):
    """The text extracted from the stored bytes for this request; empty if the extraction failed."""

    content: StoredContentDict


class DryRunDict(TypedDict):
    """The result of a dry run. Nothing was stored or counted."""

    dry_run: Literal[True]
    valid: Literal[True]
    would_create: dict[str, Any] | None
    """The fields of what would be created; null if nothing would be created."""
    errors: list[dict[str, str]]
    """`path` and `message` for each file of a batch that would be rejected."""
    request_id: str


class SourceFilters(TypedDict):
    """The filters of a list; those that are given must all match."""

    status: NotRequired[str]
    """all, queued, indexing, active or failed; without it, active members."""
    type: NotRequired[str]
    """file, page or qa."""
    tag: NotRequired[str]
    """Only sources with this tag."""
    q: NotRequired[str]
    """Only sources with this text in their title or file name."""
    title: NotRequired[str]
    """Only sources with exactly this title."""
    sha256: NotRequired[str]
    """Only sources with these bytes."""
    mapping: NotRequired[str]
    """Only sources of this sync mapping."""
