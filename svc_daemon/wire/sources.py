"""Models of sources: a file, a web page or a question with its answer, and requests that create one."""

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field, model_validator
from typing_extensions import TypedDict

from svc_daemon.wire.requests import FileDescription, NoDryRunBody, RequestBody, SourceDescription, UploadBody


class TaskReference(TypedDict):
    id: str
    type: str
    status: str


class Shortage(TypedDict):
    """A resource of which the daemon has too little, such as disk space or memory.

    A task that waits for the resource doesn't use up an attempt.
    """

    lack: Literal["disk", "disk_reserve", "descriptors", "memory", "processes", "store"]
    message: str
    since: str


class SourceError(TypedDict):
    """Why a source is `failed`, and whether a retry can help. `code` is a `SourceErrorCode`."""

    code: str
    message: str
    retryable: bool


class TextFacts(TypedDict):
    """Facts about the extracted text of an indexed source, which every release notes."""

    characters: int
    pages: int | None
    pages_without_text: list[int]
    chunks: int
    language: str | None


class StoredExtraction(TextFacts, total=False):
    """Facts as they are stored: `ExtractionFacts`, of which a source that an older release has indexed lacks some."""

    title: str | None
    hidden: int
    parts: dict[str, int]
    recognized_pages: dict[str, float]


class ExtractionFacts(TextFacts):
    """Facts about the extracted text of an indexed source."""

    #: The document's own title: its first heading, or the title that its format keeps.
    title: str | None
    #: Number of characters that no reader of the document sees. They are in no passage.
    hidden: int
    #: How many of each kind of part were read, such as `comments`, `charts` or `hidden_sheets`.
    parts: dict[str, int]
    #: The pages whose text was recognised in pictures, and how certain it is, 0 to 1; left out if there are none.
    recognized_pages: NotRequired[dict[str, float]]


class FetchFacts(TypedDict):
    """Facts of the last fetch of a source's URL."""

    final_url: str
    http_status: NotRequired[int]
    etag: str | None
    last_modified: str | None
    fetched_at: str
    #: Present and true as long as the index may not have the text of the content that was fetched.
    is_swapping: NotRequired[bool]


class StoredRefresh(TypedDict):
    """A source's schedule, after its last try. `core.refreshes` has its rules."""

    every_seconds: int
    #: `report` or `delete`: what to do if the URL no longer exists.
    on_gone: str
    #: How many tries have failed in a row.
    failures: int
    #: How many tries in a row were answered that the URL doesn't exist.
    gone: int
    tried_at: str | None
    #: Why the last try failed.
    error: SourceError | None


class SourceRefresh(TypedDict):
    """How a source keeps itself up to date, and how its last try ended."""

    every_seconds: int
    #: `report` or `delete`: what to do if the URL answered 404 or 410 three times in a row.
    on_gone: str
    #: When the next try is due.
    next_at: str | None
    #: When the URL was last tried, successfully or not; null before the first scheduled try.
    tried_at: str | None
    #: How many tries have failed in a row.
    failures: int
    #: Why the last try failed; null if it did not.
    error: SourceError | None
    #: Whether the URL has answered 404 or 410 three times in a row.
    gone: bool


class QuestionFields(TypedDict):
    """The fields of a source of the type `qa`."""

    question: str
    answer: str
    alternate_questions: list[str]


class WebhookCall(TypedDict):
    """Whom to call when a source is ready or has failed, and what to send along."""

    url: str
    metadata: dict[str, Any]


class ProviderState(TypedDict):
    """What the search index reports about the source."""

    state: Literal["STATE_PENDING", "STATE_ACTIVE", "STATE_FAILED"]
    document_id: str | None


class ShownDescription(TypedDict):
    """What describes a source wherever it is shown, in lists and in search results."""

    title: str
    filename: str
    tags: list[str]
    metadata: dict[str, Any]
    source_url: str | None


class Source(ShownDescription):
    id: str
    object: Literal["knowledge_file"]
    #: `file`, `page` or `qa`.
    type: str
    #: `queued`, `indexing`, `active` or `failed`.
    status: str
    #: Whether searches in each of the source's buckets find the source.
    ready: bool
    #: The error code of searches, if a rebuild of the index keeps the source from being `ready`. Otherwise null.
    ready_withheld_by: str | None
    #: `queued`, `syncing`, `active` or `failed` (which is retried automatically).
    bucket_sync_status: str
    content_type: str
    size_bytes: int
    sha256: str
    task: TaskReference | None
    #: The name of the mapping (a folder that `svc sync` keeps in a bucket) to which the source belongs, if any.
    mapping: str | None
    #: The URL after all redirects. This field and the next four are only set for sources from a URL.
    final_url: str | None
    http_status: int | None
    etag: str | None
    last_modified: str | None
    #: When the URL was last fetched successfully, even if its content had not changed.
    fetched_at: str | None
    #: Null if the source is fetched again only on request.
    refresh: SourceRefresh | None
    #: This field and the next two are only set for a Q&A source.
    question: str | None
    answer: str | None
    alternate_questions: list[str] | None
    bucket_ids: list[str]
    #: Id of an older source, which this source replaces as soon as this source is ready.
    replaces: str | None
    error: SourceError | None
    warnings: list[str]
    extraction: ExtractionFacts | None
    created_at: str
    updated_at: str


class SourceAnswer(Source):
    #: The resource that the source waits for, if the daemon has too little of it.
    waits_for: Shortage | None
    request_id: str


class SourceRefreshed(SourceAnswer):
    """A source after a refresh."""

    #: Whether the content has changed and is being indexed again.
    changed: bool


class SourceVerified(SourceAnswer):
    """A source requested by its id, with `provider` only for `?verify=provider`."""

    provider: NotRequired[ProviderState]


class SourceMember(Source):
    """A source in a bucket's list. `ready` and `bucket_sync_status` refer to this bucket alone."""

    bucketSyncStatus: str


class RefreshChoice(RequestBody):
    """How often to fetch a source again."""

    #: 0 for never.
    every_seconds: Annotated[int, Field(ge=0)]
    #: What to do if the URL answers 404 or 410 three times in a row: only report it, or delete the source. Without it,
    #: what was chosen before stays.
    on_gone: Literal["report", "delete"] | None = None


class SourceUpdate(NoDryRunBody):
    """Body of `PATCH /v1/sources/{id}`; omitted fields are unchanged."""

    title: str | None = None
    filename: str | None = None
    tags: list[str] | None = None
    metadata: dict[str, Any] | None = None
    #: How often to fetch the source's URL again. If it is null and the only field, the source has no schedule any more.
    refresh: RefreshChoice | None = None

    @model_validator(mode="before")
    @classmethod
    def _without_schedule(cls, fields: Any) -> Any:
        return {"refresh": {"every_seconds": 0}} if fields == {"refresh": None} else fields


class SourceAttach(RequestBody):
    """Body of `POST /v1/buckets/{bucket}/sources`."""

    source_id: Annotated[str, Field(min_length=1, max_length=64)]
    dry_run: bool = False


class Deleted(TypedDict):
    id: str
    object: Literal["knowledge_file"]
    deleted: Literal[True]
    request_id: str


class Detached(TypedDict):
    id: str
    object: Literal["knowledge_file"]
    bucket_id: str
    detached: Literal[True]
    #: Buckets that still contain the source.
    bucket_ids: list[str]
    request_id: str


class Location(TypedDict):
    """A location in the original document. Fields that don't apply to the document's format are null."""

    page: int | None
    line_start: int | None
    line_end: int | None
    char_start: int
    char_end: int
    headings: list[str]
    #: Present and true if the text was recognised in a picture, such as a scan. It may differ from the original.
    ocr: NotRequired[bool]
    #: How certain the recogniser is of the page's text, 0 to 1; only with `ocr`.
    confidence: NotRequired[float]


class Freshness(TypedDict):
    """How old the text of a source from a URL is."""

    #: When the URL was last fetched successfully, even if its content had not changed; null for sources without one.
    fetched_at: str | None
    #: Whether the source keeps itself up to date and could not: its last refresh failed.
    stale: bool
    #: Why it is stale; null if it is not.
    stale_reason: str | None


class TextChunk(TypedDict):
    chunk_id: str
    text: str
    location: Location


class HiddenPiece(TypedDict):
    """Text of a document that its reader doesn't see."""

    text: str
    #: Why it isn't seen, such as `display:none`.
    reason: str
    #: Page, slide or sheet, from 1.
    page: int | None
    #: Line in the file, from 1.
    line: int | None


class SourceText(TypedDict):
    """The extracted text, and its chunks for searching."""

    id: str
    object: Literal["source_text"]
    text: str
    chunks: list[TextChunk]
    #: Text that no reader of the document sees, and that no search finds; only if `hidden` was asked for.
    hidden: NotRequired[list[HiddenPiece]]
    request_id: str


class StoredContent(TypedDict):
    """What the service found when it read the source's stored bytes again."""

    #: SHA-256 in hexadecimal; null if the bytes are missing.
    sha256: str | None
    #: Whether the stored bytes are the same as the bytes that the service once received.
    unchanged: bool
    #: Why no text could be extracted; null if the extraction succeeded.
    error: SourceError | None


class SourceReread(SourceText):
    """The text extracted from the stored bytes for this request; empty if the extraction failed."""

    content: StoredContent


class DryRun(TypedDict):
    """The result of a dry run. Nothing was stored or counted."""

    dry_run: Literal[True]
    valid: Literal[True]
    #: The fields of what would be created; null if nothing would be created.
    would_create: dict[str, Any] | None
    #: `path` and `message` for each file of a batch that would be rejected.
    errors: list[dict[str, str]]
    request_id: str


class QaCreate(UploadBody, SourceDescription):
    """Body of `POST /v1/buckets/{bucket}/qa`."""

    question: str
    answer: str
    #: Other wordings of the question.
    alternate_questions: list[str] = Field(default_factory=list)
    dry_run: bool = False


class Webhook(RequestBody):
    """The URL to call when the source is ready or has failed."""

    url: Annotated[str, Field(min_length=1)]
    #: Any JSON object. It is sent unchanged in the webhook call.
    metadata: dict[str, Any] = Field(default_factory=dict)


class UrlImport(FileDescription):
    """Body of `POST /v1/buckets/{bucket}/files/import` and `…/pages`."""

    url: Annotated[str, Field(min_length=1)]
    webhook: Webhook | None = None
    #: Import the URL even if it leads to a web page instead of a file, or to a file instead of a web page.
    force: bool = False
    #: Fetch the URL again regularly. For a page that is in the bucket already, this only changes its schedule.
    refresh: RefreshChoice | None = None
    dry_run: bool = False


class Refresh(NoDryRunBody):
    """Body of `POST /v1/sources/{id}/refresh`; optional."""

    #: Refresh even if the URL now leads to a file instead of a web page, or to a web page instead of a file.
    force: bool = False
