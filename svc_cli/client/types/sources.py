"""Types of sources. Made from `svc_daemon.wire` by `python -m tests.rules.client_types`."""

from typing import Any, Literal, NotRequired, TypedDict


class TaskReferenceDict(TypedDict):
    id: str
    type: str
    status: str


class ShortageDict(TypedDict):
    """A resource of which the daemon has too little, such as disk space or memory.

    Work that needs the resource waits, which doesn't count as an attempt.
    """

    lack: Literal["disk", "disk_reserve", "descriptors", "memory", "processes", "store"]
    message: str
    since: str


class SourceErrorDict(TypedDict):
    """Why a source is `failed`: a `SourceErrorCode`, a message, and whether a retry can help."""

    code: str
    message: str
    retryable: bool


class ExtractionFactsDict(TypedDict):
    """Facts about the extracted text, available once the source is indexed."""

    characters: int
    pages: int | None
    pages_without_text: list[int]
    chunks: int
    language: str | None


class ProviderStateDict(TypedDict):
    """The state of the source in the search index, as read from the index itself instead of the source's row."""

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
    """Whether the source is indexed, active in all of its buckets, and found by searches."""
    ready_withheld_by: str | None
    """Why the source is not `ready` although it is indexed and synced: the error code with which searches are
    refused.
    """
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
    """The name of the mapping (a folder that `svc sync` keeps in a bucket) that created the source, if any."""
    source_url: str | None
    final_url: str | None
    """The URL after all redirects. This field and the next four are only set for sources that were fetched from a
    URL.
    """
    http_status: int | None
    etag: str | None
    last_modified: str | None
    fetched_at: str | None
    """When the URL was last fetched successfully, even if its content had not changed."""
    question: str | None
    """The question. This field and the next two are only set for a Q&A source."""
    answer: str | None
    alternate_questions: list[str] | None
    bucket_ids: list[str]
    replaces: str | None
    """Id of the source that is replaced by this one as soon as this one is ready."""
    error: SourceErrorDict | None
    warnings: list[str]
    extraction: ExtractionFactsDict | None
    created_at: str
    updated_at: str


class SourceAnswerDict(SourceDict):
    waits_for: ShortageDict | None
    """The resource for which this source is waiting, if there is a shortage of one."""
    request_id: str


class SourceRefreshedDict(SourceAnswerDict):
    """A source after a refresh."""

    changed: bool
    """Whether the content has changed, so that it is being indexed again."""


class SourceVerifiedDict(SourceAnswerDict):
    """A source that was requested by its id. Its state in the index is only included with `?verify=provider`."""

    provider: NotRequired[ProviderStateDict]


class SourceMemberDict(SourceDict):
    """A source in the list of a bucket's sources, with its state in this bucket.

    Some fields are also given in camel case.
    """

    bucketSyncStatus: str


class BucketSourcesDict(TypedDict):
    bucket_id: str
    revision: int
    """The bucket's `revision`. While it is the same, the list is the same too."""
    sources: list[SourceMemberDict]
    has_more: NotRequired[bool]
    last_id: NotRequired[str | None]
    request_id: str


class SourceListDict(TypedDict):
    """The sources with the requested ids."""

    sources: list[SourceDict]
    """The sources that exist, in the order of the requested ids."""
    missing: list[str]
    """The requested ids for which there is no source."""
    replaced_by: dict[str, str]
    """Maps each missing id whose source was replaced to the id of the source that replaced it."""
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
    """Ids of the buckets that still contain the source."""
    request_id: str


class LocationDict(TypedDict):
    """A location in the original document. Fields that the document's format doesn't have are null."""

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
    """The extracted text, and the chunks into which it was split for searching."""

    id: str
    object: Literal["source_text"]
    text: str
    chunks: list[TextChunkDict]
    request_id: str


class StoredContentDict(TypedDict):
    """The current state of the source's stored bytes."""

    sha256: str | None
    """The SHA-256 of the stored bytes, in hexadecimal; null if they are missing."""
    unchanged: bool
    """Whether the stored bytes are the same as when they were received."""
    error: SourceErrorDict | None
    """Why no text could be extracted; null if it could be."""


class SourceRereadDict(SourceTextDict):
    """The text that was extracted from the stored bytes for this request; empty if the extraction failed."""

    content: StoredContentDict


class DryRunDict(TypedDict):
    """The result of a dry run of a create, attach or finalize request. Nothing was stored or counted."""

    dry_run: Literal[True]
    valid: Literal[True]
    would_create: dict[str, Any] | None
    """What would be created; null if it already exists, or if the same request was already made."""
    errors: list[dict[str, str]]
    """The `path` and `message` of each invalid part of the request, which would be skipped."""
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
