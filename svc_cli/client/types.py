"""The types of what the client returns, named like the API's types with `Dict` at the end, and of what it takes.

The client itself imports this module for type checkers only: importing it loads pydantic, which takes time.
"""

from typing import Any, Literal, NotRequired, Required

from typing_extensions import TypedDict

from svc_daemon.wire import (
    agents,
    batches,
    buckets,
    events,
    keys,
    listings,
    searches,
    services,
    sessions,
    sources,
    tasks,
    vectors,
    webhooks,
)
from svc_daemon.wire.light import errors
from svc_daemon.wire.openai import citations, completions, models, responses

PolicyDict = agents.Policy
AgentDict = agents.Agent
AgentAnswerDict = agents.AgentAnswer
AgentListDict = agents.AgentList
AgentDeletedDict = agents.AgentDeleted
ModelDict = models.Model
ModelAnswerDict = models.ModelAnswer
ModelListDict = models.ModelList
AnnotationDict = completions.Annotation
AnswerSourceDict = completions.AnswerSource
BatchTargetDict = batches.BatchTarget
BatchPackDict = batches.BatchPack
RejectedItemDict = batches.RejectedItem
BatchDict = batches.Batch
FinalizedItemDict = batches.FinalizedItem
ReplayedItemDict = batches.ReplayedItem
PendingItemDict = batches.PendingItem
FailedItemDict = batches.FailedItem
BatchFinalizedDict = batches.BatchFinalized
BatchItemDict = batches.BatchItem
BatchCountersDict = batches.BatchCounters
BatchStatusDict = batches.BatchStatus
ChunkingDict = buckets.ChunkSizes
BucketCountsDict = buckets.BucketCounts
BucketStoreDict = buckets.BucketStore
BucketDict = buckets.Bucket
BucketAnswerDict = buckets.BucketAnswer
BucketPutAnswerDict = buckets.BucketPutAnswer
DeletionDict = buckets.Deletion
BucketDeletedDict = buckets.BucketDeleted
BucketListDict = buckets.BucketList
CheckedQuoteDict = citations.CheckedQuote
CheckedQuotesDict = citations.CheckedQuotes
CompletionUsageDict = completions.CompletionUsage
CompletionMessageDict = completions.CompletionMessage
CompletionChoiceDict = completions.CompletionChoice
CompletionDict = completions.Completion
ErrorBodyDict = errors.ErrorBody
LogEventDict = events.LogEvent
EventListDict = events.EventList
KeyDict = keys.Key
KeyAnswerDict = keys.KeyAnswer
NewKeyDict = keys.NewKey
ConsoleSessionDict = keys.ConsoleSession
KeyCreatedDict = keys.KeyCreated
KeyListDict = keys.KeyList
OutputTextDict = responses.OutputText
OutputMessageDict = responses.OutputMessage
InputTokensDetailsDict = responses.InputTokensDetails
OutputTokensDetailsDict = responses.OutputTokensDetails
ResponseUsageDict = responses.ResponseUsage
ResponseFaultDict = responses.ResponseFault
IncompleteDetailsDict = responses.IncompleteDetails
PlainTextDict = responses.PlainText
TextConfigDict = responses.TextConfig
ResponseDict = responses.Response
ExplainedTermDict = searches.ExplainedTerm
ExplainedKeywordDict = searches.ExplainedKeyword
ExplainedMeaningDict = searches.ExplainedMeaning
ExplanationDict = searches.Explanation
SearchResultDict = searches.SearchResult
SearchPageDict = searches.SearchPage
WriterCountersDict = services.WriterCounters
QueueCountersDict = services.QueueCounters
EmbeddingDict = services.Embedding
WritingDict = services.Writing
SetAsideDict = services.SetAside
HealthDict = services.Health
VersionDict = services.Version
LimitDict = services.Limit
ReadFormatDict = services.ReadFormat
LimitsAnswerDict = services.LimitsAnswer
TaskReferenceDict = sources.TaskReference
ShortageDict = sources.Shortage
SourceErrorDict = sources.SourceError
ExtractionFactsDict = sources.ExtractionFacts
ProviderStateDict = sources.ProviderState
SourceDict = sources.Source
SourceAnswerDict = sources.SourceAnswer
SourceRefreshedDict = sources.SourceRefreshed
SourceRefreshDict = sources.SourceRefresh
SourceVerifiedDict = sources.SourceVerified
SourceMemberDict = sources.SourceMember
BucketSourcesDict = listings.BucketSources
FailureGroupDict = listings.FailureGroup
BucketFailuresDict = listings.BucketFailures
BucketRetriedDict = listings.BucketRetried
SourceListDict = listings.SourceList
WatchedMappingDict = services.WatchedMapping
WatcherDict = services.Watcher
WatcherAnswerDict = services.WatcherAnswer
WatcherListDict = services.WatcherList
VectorStateDict = services.VectorState
DiskStateDict = services.DiskState
TroubleDict = services.Trouble
ServiceStatusDict = services.ServiceStatus
DeletedDict = sources.Deleted
DetachedDict = sources.Detached
LocationDict = sources.Location
TextChunkDict = sources.TextChunk
SourceTextDict = sources.SourceText
StoredContentDict = sources.StoredContent
SourceRereadDict = sources.SourceReread
DryRunDict = sources.DryRun
TaskProgressDict = tasks.TaskProgress
TaskDict = tasks.Task
TaskAnswerDict = tasks.TaskAnswer
UploadDict = sessions.Upload
UploadStatusDict = sessions.UploadStatus
StorageAnswerDict = sessions.StorageAnswer
PackAnswerDict = sessions.PackAnswer
BucketVectorsDict = vectors.BucketVectors
OffersKeptDict = vectors.OffersKept
EmbeddedChunkDict = vectors.EmbeddedChunk
SourceVectorsDict = vectors.SourceVectors
CallErrorDict = webhooks.CallError
DeliveryAttemptDict = webhooks.DeliveryAttempt
DeliveryDict = webhooks.Delivery
DeliveryAnswerDict = webhooks.DeliveryAnswer
DeliveryListDict = webhooks.DeliveryList
WebhookSecretDict = webhooks.WebhookSecret


class SettledSource(TypedDict):
    """The state of a source after a wait. If `status` is `gone`, the optional fields may be missing."""

    id: str
    status: str
    """`active`, `failed` or, if it was deleted or replaced meanwhile, `gone`."""
    ready: bool
    error: NotRequired[SourceErrorDict | None]
    """Why the source has failed."""
    warnings: NotRequired[list[str]]
    title: NotRequired[str]
    replaced_by: NotRequired[str | None]
    """The source that replaced it, if that is known."""


class QuotedPlaceDict(TypedDict, total=False):
    """Where a quote is, as an answer says it. A page, or lines, that are left out are not checked."""

    char_start: Required[int]
    char_end: Required[int]
    page: int | None
    line_start: int | None
    line_end: int | None
    headings: list[str]


class QuoteToCheckDict(TypedDict, total=False):
    """A quote that an answer cites, and what is above it in its document.

    With a source and a location, as the `sources` of an answer have them, the quote is also proven.
    """

    number: Required[int]
    """The number in the citation marks for it: 1 for `[1]`."""
    quote: Required[str]
    title: str
    headings: list[str]
    source_id: str | None
    location: QuotedPlaceDict | None


class PolicyFieldsDict(TypedDict, total=False):
    """What an agent may search. Omitted fields are unchanged.

    A list of buckets or sources also sets `scope`. Unknown fields are refused, since a misspelled field would not
    limit anything.
    """

    scope: Literal["buckets", "sources", "team"] | None
    bucket_ids: list[str] | None
    """Ids or slugs; slugs are stored as ids. `*` means all active buckets."""
    source_ids: list[str] | None
    filters: dict[str, Any] | None
    """A filter in OpenAI's syntax, as in a search; an empty object removes the filter."""
    top_k: int | None
    """Default number of passages for a request; null removes the setting."""
    score_threshold: float | None
    """Minimum score of passages to use; null removes the setting."""


class AgentUpdateDict(TypedDict, total=False):
    """Body of `PUT /v1/agents/{agent_id}`; omitted fields are unchanged."""

    name: str | None
    role: str | None
    instructions: str | None
    policy: PolicyFieldsDict | None
    bound_surface: str | None
    """Where the agent is used, such as `widget`; an empty string removes the value."""


class AgentCreateDict(AgentUpdateDict, total=False):
    """Body of `POST /v1/agents`."""

    agent_id: str | None
    """The new agent's id; generated if omitted."""


class ChunkingUpdateDict(TypedDict, total=False):
    """Changes to a bucket's chunk sizes. Omitted sizes are kept. An empty object resets all sizes to the defaults."""

    target: int | None
    min: int | None
    max: int | None
    overlap: int | None


class BucketFieldsDict(TypedDict, total=False):
    """Optional body of `PUT /v1/buckets/{slug}`, ignored if the bucket exists."""

    name: str | None
    description: str | None
    metadata: dict[str, Any]
    chunking: ChunkingUpdateDict | None


class BucketUpdateDict(TypedDict, total=False):
    """Body of `PATCH /v1/buckets/{bucket}`; omitted fields are unchanged.

    If `chunking` changes, the documents are split again in the background. An empty `chunking` restores the
    defaults.
    """

    name: str | None
    description: str | None
    metadata: dict[str, Any] | None
    status: Literal["active", "archived"] | None
    chunking: ChunkingUpdateDict | None


class KeyFieldsDict(TypedDict, total=False):
    """The fields of a new key, with either `capabilities` or `preset`.

    Omitted limits, such as `buckets`, are those of the key that makes the request.
    """

    name: Required[str]
    preset: str | None
    """A named set of capabilities: `admin`, `ingest` or `read`."""
    capabilities: list[str] | None
    buckets: list[str] | None
    """The only buckets that the key may access (ids or slugs)."""
    models: list[str] | None
    """The only models that the key may use (model ids or agent ids)."""
    expires_at: str | None
    """When the key expires, in ISO 8601 with a time zone."""


class QaCreateDict(TypedDict, total=False):
    """Body of `POST /v1/buckets/{bucket}/qa`."""

    alternate_questions: list[str]
    """Other wordings of the question."""
    tags: list[str]
    metadata: dict[str, Any]
    replaces: str | None
    mapping: str | None


class AskOptions(TypedDict, total=False):
    instructions: str | None
    """Instructions for the language model. Without a language model, they are ignored."""
    metadata: dict[str, str]
    """Returned unchanged in the response."""
    buckets: list[str] | None
    """Search only these buckets (ids or slugs)."""


class SearchOptions(TypedDict, total=False):
    agent: str | None
    """A model id, such as `svc-agent`. The agent's policy limits the search further."""
    buckets: list[str] | None
    """Ids or slugs of the buckets to search; if omitted, all active ones."""
    source_ids: list[str] | None
    filters: dict[str, Any] | None
    """A filter in OpenAI's syntax: eq, ne, gt, gte, lt, lte, in, nin, and, or."""
    tags: list[str] | None
    """Search only sources that have all of these tags."""
    max_num_results: int
    mode: Literal["hybrid", "keyword", "semantic"]
    score_threshold: float | None
    explain: bool


class RefreshChoiceDict(TypedDict):
    """How often to fetch a source again from its URL."""

    #: 0 for never.
    every_seconds: int
    #: What to do if the URL no longer exists: only report it, or delete the source.
    on_gone: NotRequired[Literal["report", "delete"] | None]


class SourceUpdateDict(TypedDict, total=False):
    """Body of `PATCH /v1/sources/{id}`; omitted fields are unchanged."""

    title: str | None
    filename: str | None
    tags: list[str] | None
    metadata: dict[str, Any] | None
    refresh: RefreshChoiceDict | None


class SourceFilters(TypedDict, total=False):
    """The filters of a list; those that are given must all match."""

    status: str
    """all, queued, indexing, active, failed or unread_scan; without it, active members."""
    type: str
    """file, page or qa."""
    tag: str
    """Only sources with this tag."""
    q: str
    """Only sources with each of these words in their title or file name."""
    title: str
    """Only sources with exactly this title."""
    sha256: str
    """Only sources with these bytes."""
    mapping: str
    """Only sources of this sync mapping."""
    error_code: str
    """Only failed sources whose error has this code."""
    stale: str
    """true: only sources whose last scheduled refresh failed; false: only the others."""
    sort: str
    """title, created_at, updated_at, size_bytes or status; with `-` before it, descending."""


class OfferedVectorDict(TypedDict):
    """A vector that a client offers for all passages whose text has the given hash."""

    text_sha256: str
    """SHA-256, in hexadecimal, of the embedded text: title, headings and text."""
    vector: str
    """32-bit floats, little-endian, in base64."""
