"""The URL map of the service, on one screen, and the application made of it."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import cache, partial

from starlette.applications import Starlette
from starlette.routing import Route

from svc_daemon.api import (
    admin,
    agents,
    batches,
    buckets,
    completions,
    files,
    imports,
    keys,
    legacy,
    mcp,
    models,
    qa,
    responses,
    searches,
    services,
    sources,
    storage,
    tasks,
    uploads,
    webhooks,
)
from svc_daemon.api.cross_origins import STORAGE_PREFIX
from svc_daemon.api.dry_runs import DRY, serving
from svc_daemon.api.endpoints import Endpoint
from svc_daemon.api.hardening import EXCEPTION_HANDLERS, Hardening, middleware
from svc_daemon.api.openapi import describe
from svc_daemon.settings import Limits
from svc_daemon.wire import agents as agent
from svc_daemon.wire import batches as batching
from svc_daemon.wire import buckets as bucket
from svc_daemon.wire import completions as completing
from svc_daemon.wire import imports as importing
from svc_daemon.wire import keys as keying
from svc_daemon.wire import legacy as old
from svc_daemon.wire import qa as question
from svc_daemon.wire import responses as responding
from svc_daemon.wire import searches as searching
from svc_daemon.wire import services as service
from svc_daemon.wire import sources as source
from svc_daemon.wire import tasks as task
from svc_daemon.wire import uploads as uploading
from svc_daemon.wire import webhooks as hooking
from svc_daemon.wire.codes import ErrorCode as E

Lifespan = Callable[[Starlette], AbstractAsyncContextManager[None]]

PAGE = {
    "limit": "Rows of a page, 1 to {page_rows}; without it, everything.",
    "after": "The last id of the page before.",
}
MEMBERS = PAGE | {
    "status": "all, queued, indexing, active or failed; without it, active members.",
    "type": "file, page or qa.",
    "tag": "Only sources with this tag.",
    "q": "Only sources with this text in their title or file name.",
    "title": "Only sources with exactly this title.",
    "sha256": "Only sources with these bytes.",
    "mapping": "Only sources of this sync mapping.",
}
SHOWN = {"members": "false: without `knowledgeIds`."}
LIST = PAGE | SHOWN | {"include_archived": "true: archived ones too."}
CALLS = PAGE | {"status": "pending, delivered or failed.", "source_id": "Only calls about this source."}
FORM = {
    "title": "Title; the file name where it is missing.",
    "tags": "Tags, separated by commas.",
    "metadata": "A JSON object as text.",
    "sha256": "The bytes' SHA-256 in hex; refused where it differs.",
    "replaces": "The id of the source whose place this one takes when it is ready.",
    "mapping": "The name of the sync mapping that owns the source.",
    **DRY,
}
FIND = {
    "q": "The query.",
    "agent": "A model id, such as svc-agent.",
    "buckets": "An id or slug; may be repeated.",
    "source_ids": "Only this source; may be repeated.",
    "tags": "Only sources that carry this tag; may be repeated.",
    "score_threshold": "0 to 1: leave out what scores less.",
    "max_num_results": "1 to {search_results}.",
    "mode": "hybrid, keyword or semantic.",
    "explain": "true: say of each result how it was found and scored.",
}
REREAD = {"verify": "content: read the stored bytes again, whatever the index holds."}
VERIFY = {"verify": "provider: ask the index itself too."}
PART = {
    "Content-Range": "bytes FIRST-LAST/TOTAL of the chunk, or bytes */TOTAL to ask; without it, the whole file.",
    "X-Guploader-No-308": "yes: tell a part by 200, no body, and X-Http-Status-Code-Override: 308.",
}
NO_BUCKET, NO_SOURCE = (E.BUCKET_NOT_FOUND,), (E.SOURCE_NOT_FOUND,)
FIELDS = (E.METADATA_TOO_LARGE, E.TOO_MANY_TAGS)
GATES = (E.UPLOAD_RATE_LIMITED, E.QUOTA_EXCEEDED, E.STORAGE_FULL)
SIZES = (E.EMPTY_FILE, E.FILE_TOO_LARGE)
BYTES = (*SIZES, E.CHECKSUM_MISMATCH)
NAMED = (E.BUCKET_REQUIRED, E.BUCKET_ASSIGNMENT_FAILED)
WEB = (*NO_SOURCE, *FIELDS, *GATES, E.URL_FETCH_BLOCKED, E.URL_FETCH_FAILED)
URL = (*NO_BUCKET, *WEB)
#: A page without bytes is one that can't be analysed.
PAGED = (E.FILE_TOO_LARGE, E.CHECKSUM_MISMATCH, E.URL_IS_FILE, E.WEBSITE_URL_EXISTS, E.WEBSITE_ANALYSIS_FAILED)
REFETCH = (*SIZES, E.QUOTA_EXCEEDED, E.STORAGE_FULL, E.REQUEST_IN_PROGRESS, E.URL_FETCH_BLOCKED, E.URL_FETCH_FAILED)
NO_SESSION, ENDED = (E.SESSION_NOT_FOUND,), (E.SESSION_EXPIRED, E.SESSION_CANCELED, E.REQUEST_IN_PROGRESS)
MISPLACED = (E.OFFSET_MISMATCH, E.SIZE_MISMATCH, E.CHECKSUM_MISMATCH, E.UNSUPPORTED_MEDIA_TYPE)
INDEX = (E.SEARCH_FAILED, E.TEAM_STORE_MAINTENANCE)
SEARCH = (
    E.MODEL_NOT_ALLOWED,
    E.BUCKET_STORE_INDEXING_PENDING,
    E.RAG_QUOTA_EXCEEDED,
    E.SEARCH_DISABLED,
    E.SEARCH_TIMEOUT,
    *INDEX,
    *NO_BUCKET,
)
AGENTS = (E.MODEL_NOT_FOUND, E.AGENT_NOT_FOUND)
NO_AGENT = (E.MODEL_NOT_ALLOWED, E.AGENT_NOT_FOUND)
ANSWER = (*SEARCH, *AGENTS, E.METADATA_FILTER_TOO_LARGE, E.ANSWER_FAILED, E.ANSWER_TIMEOUT)

B, S, W, K = "/v1/buckets/{bucket}", "/v1/sources/{source_id}", "/v1/webhooks", "/v1/knowledge"
A = "/v1/agents/{agent_id}"
U, STORAGE = B + "/uploads/{session_id}", STORAGE_PREFIX + "{session_id}/{token}"
B_ANY = {201: bucket.BucketAnswer, 200: bucket.BucketAnswer | source.DryRun}
B_PUT = {201: bucket.BucketPutAnswer, 200: bucket.BucketPutAnswer | source.DryRun}
S_ANY = {201: source.SourceAnswer, 200: source.SourceAnswer | source.DryRun}
U_ANY = {201: uploading.Upload, 200: uploading.Upload | source.DryRun}
A_ANY = {201: agent.AgentAnswer, 200: agent.AgentAnswer | source.DryRun}
K_ANY = {201: keying.KeyCreated, 200: keying.KeyCreated | source.DryRun}
BATCH_ANY = {201: batching.Batch, 200: batching.Batch | source.DryRun}
S_ONE = {200: source.SourceAnswer}

# fmt: off
ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint("GET", "/healthz", services.health, "Is the service alive?", {200: service.Health}, keyed=False,
             query={"nonce": "16 to 128 characters that `proof` answers under the installation's secret."}),
    Endpoint("GET", "/openapi.json", services.openapi, "This document", {200: None}, keyed=False),
    Endpoint("GET", "/v1/version", services.version, "Release and API versions", {200: service.Version},
             query={"verify": "`writing`: ask the server of the model that writes the answers if it is there."}),
    Endpoint("GET", "/v1/limits", services.limits, "Every limit, and the formats read", {200: service.LimitsAnswer}),

    Endpoint("GET", "/v1/buckets", buckets.list_all, "List buckets", {200: bucket.BucketList},
             query=LIST),
    Endpoint("POST", "/v1/buckets", buckets.create, "Make a bucket", B_ANY,
             body=bucket.BucketCreate, query=DRY, repeatable=True, errors=(E.BUCKET_SLUG_EXISTS, E.METADATA_TOO_LARGE)),
    Endpoint("PUT", B, buckets.put, "Make a bucket unless it exists", B_PUT,
             body=bucket.BucketFields, optional=True, query=DRY, errors=(E.BUCKET_SLUG_EXISTS, E.METADATA_TOO_LARGE)),
    Endpoint("GET", B, buckets.show, "Show a bucket", {200: bucket.BucketAnswer}, query=SHOWN,
             errors=NO_BUCKET),
    Endpoint("PATCH", B, buckets.update, "Rename, describe, archive or restore a bucket", {200: bucket.BucketAnswer},
             body=bucket.BucketUpdate, errors=(*NO_BUCKET, E.METADATA_TOO_LARGE, E.DELETE_IN_PROGRESS)),
    Endpoint("DELETE", B, buckets.delete, "Delete a bucket and the sources that have no other",
             {200: bucket.BucketDeleted}, query={"force": "true: really."},
             errors=(*NO_BUCKET, E.FORCE_REQUIRED, E.DELETE_IN_PROGRESS)),

    Endpoint("POST", B + "/files", files.upload, "Upload a file", S_ANY,
             form=FORM, query=DRY, repeatable=True, errors=(*NO_BUCKET, *NO_SOURCE, *FIELDS, *GATES, *BYTES)),
    Endpoint("POST", B + "/files/import", imports.import_file, "Import a file from a URL", S_ANY,
             body=importing.UrlImport, query=DRY, repeatable=True, errors=(*URL, *BYTES, E.URL_IS_WEB_PAGE)),
    Endpoint("POST", B + "/pages", imports.add_page, "Take in a web page", S_ANY,
             body=importing.UrlImport, query=DRY, repeatable=True,
             errors=(*URL, *PAGED)),
    Endpoint("POST", B + "/qa", qa.create, "Add a question and its answer", S_ANY,
             body=question.QaCreate, query=DRY, repeatable=True, errors=(*NO_BUCKET, *NO_SOURCE, *FIELDS, *GATES)),
    Endpoint("POST", B + "/uploads", uploads.create, "Open an upload session", U_ANY,
             body=uploading.UploadCreate, query=DRY, repeatable=True,
             errors=(*NO_BUCKET, *NO_SOURCE, *FIELDS, *GATES, *SIZES)),
    Endpoint("GET", U, uploads.show, "Show an upload session", {200: uploading.UploadStatus},
             errors=(*NO_SESSION, *NO_BUCKET)),
    Endpoint("DELETE", U, uploads.cancel, "Cancel an upload session", {200: uploading.UploadStatus},
             errors=(*NO_SESSION, *NO_BUCKET, E.REQUEST_IN_PROGRESS)),
    Endpoint("POST", U + "/finalize", uploads.finalize, "Make a source of an uploaded file",
             S_ANY,
             body=uploading.UploadFinalize, optional=True, query=DRY,
             errors=(*NO_SESSION, *NO_BUCKET, *NO_SOURCE, *ENDED, E.BLOB_NOT_UPLOADED, E.CHECKSUM_MISMATCH)),
    Endpoint("PUT", STORAGE, storage.put, "Send bytes of a session", {200: uploading.StorageAnswer, 308: None},
             raw=True, headers=PART, errors=(*NO_SESSION, *ENDED, *MISPLACED), keyed=False, name="storage"),
    Endpoint("OPTIONS", STORAGE, storage.preflight, "May a page send here?", {204: None}, keyed=False),

    Endpoint("POST", B + "/batches", batches.create, "Open a batch", BATCH_ANY,
             body=batching.BatchCreate, query=DRY, repeatable=True, errors=(*NO_BUCKET, *GATES)),
    Endpoint("POST", B + "/batches/{batch_id}/finalize", batches.finalize, "Make sources of a batch's files",
             {200: batching.BatchFinalized | source.DryRun}, body=batching.BatchFinalize, optional=True, query=DRY,
             errors=(*NO_BUCKET, E.BATCH_NOT_FOUND, E.REQUEST_IN_PROGRESS)),
    Endpoint("GET", "/v1/knowledge/batches/{batch_id}", batches.show, "Show a batch", {200: batching.BatchStatus},
             query={"include_items": "true: each file too."}, errors=(E.BATCH_NOT_FOUND,)),

    Endpoint("GET", K + "/buckets", buckets.list_all, "List buckets (alias)", {200: bucket.BucketList},
             query=LIST, successor="/v1/buckets"),
    Endpoint("POST", K + "/files/upload-session", legacy.create_upload, "Open an upload session (alias)", U_ANY,
             body=old.LegacyUploadCreate, query=DRY, repeatable=True, successor=B + "/uploads",
             errors=(*NAMED, *NO_SOURCE, *FIELDS, *GATES, *SIZES)),
    Endpoint("POST", K + "/files:batch/upload-session", legacy.create_batch, "Open a batch (alias)", BATCH_ANY,
             body=old.LegacyBatchCreate, query=DRY, repeatable=True, successor=B + "/batches",
             errors=(*NAMED, *GATES)),
    Endpoint("POST", K + "/websites", legacy.add_page, "Take in a web page (alias)", S_ANY,
             body=old.LegacyUrlImport, query=DRY, repeatable=True, successor=B + "/pages",
             errors=(*NAMED, *WEB, *PAGED)),

    Endpoint("GET", B + "/sources", sources.list_members, "List a bucket's members", {200: source.BucketSources},
             query=MEMBERS, errors=NO_BUCKET),
    Endpoint("POST", B + "/sources", sources.attach, "Put a source into one more bucket",
             {200: source.SourceAnswer | source.DryRun}, body=source.SourceAttach, query=DRY,
             errors=(*NO_BUCKET, *NO_SOURCE)),
    Endpoint("DELETE", B + "/sources/{source_id}", sources.detach, "Take a source out of this bucket only",
             {200: source.Detached}, errors=(*NO_BUCKET, *NO_SOURCE)),

    Endpoint("GET", S, sources.show, "Show a source: is it ready?", {200: source.SourceVerified},
             query=VERIFY, errors=(*NO_SOURCE, *INDEX)),
    Endpoint("PATCH", S, sources.update, "Describe a source", S_ONE,
             body=source.SourceUpdate, errors=(*NO_SOURCE, *FIELDS, *INDEX)),
    Endpoint("DELETE", S, sources.delete, "Delete a source everywhere", {200: source.Deleted},
             errors=(*NO_SOURCE, E.DELETE_BLOCKED),
             query={"force": "true: even if other things depend on it."}),
    Endpoint("POST", S + "/retry", sources.retry, "Index a failed source again", S_ONE, errors=NO_SOURCE),
    Endpoint("POST", S + "/refresh", sources.refresh, "Fetch a source's URL again",
             {200: source.SourceRefreshed, 202: source.SourceRefreshed}, body=importing.Refresh, optional=True,
             errors=(*NO_SOURCE, *REFETCH, E.URL_IS_WEB_PAGE, E.URL_IS_FILE, E.WEBSITE_ANALYSIS_FAILED)),
    Endpoint("GET", S + "/content", sources.content, "The stored bytes", {200: None}, errors=NO_SOURCE),
    Endpoint("GET", S + "/text", sources.text, "The extracted text and its chunks",
             {200: source.SourceText | source.SourceReread}, query=REREAD,
             errors=(*NO_SOURCE, E.BUCKET_STORE_INDEXING_PENDING, *INDEX)),
    Endpoint("GET", "/v1/knowledge/files/{source_id}", sources.show, "Show a source (alias)",
             {200: source.SourceVerified}, query=VERIFY, errors=(*NO_SOURCE, *INDEX)),
    Endpoint("GET", "/v1/knowledge/tasks/{task_id}", tasks.show, "Show a task", {200: task.TaskAnswer},
             errors=(E.TASK_NOT_FOUND,)),

    Endpoint("GET", W + "/deliveries", webhooks.list_deliveries, "List the calls of webhooks",
             {200: hooking.DeliveryList}, query=CALLS),
    Endpoint("POST", W + "/deliveries/{delivery_id}/resend", webhooks.resend, "Call a webhook again",
             {200: hooking.DeliveryAnswer}),
    Endpoint("GET", W + "/secret", webhooks.show_secret, "Show the secret that signs calls",
             {200: hooking.WebhookSecret}),
    Endpoint("POST", W + "/secret/rotate", webhooks.rotate_secret, "Make a new secret", {200: hooking.WebhookSecret}),

    Endpoint("POST", "/v1/keys", keys.create, "Make an API key, which is shown this once", K_ANY,
             body=keying.KeyCreate, query=DRY, repeatable=True,
             errors=(*NO_BUCKET, E.MODEL_NOT_FOUND, E.MODEL_NOT_ALLOWED)),
    Endpoint("GET", "/v1/keys", keys.list_all, "List API keys", {200: keying.KeyList}, query=PAGE),
    Endpoint("DELETE", "/v1/keys/{key_id}", keys.revoke, "Revoke an API key", {200: keying.KeyAnswer},
             errors=(E.KEY_NOT_FOUND,)),

    Endpoint("POST", "/v1/agents", agents.create, "Make an agent", A_ANY,
             body=agent.AgentCreate, query=DRY, repeatable=True,
             errors=(E.AGENT_EXISTS, E.AGENT_LIMIT_REACHED, E.AGENT_REPLAY_CHECK_UNAVAILABLE, E.INVALID_AGENT_PROFILE,
                     E.MODEL_NOT_ALLOWED)),
    Endpoint("GET", "/v1/agents", agents.list_all, "List agents", {200: agent.AgentList}, query=PAGE),
    Endpoint("GET", A, agents.show, "Show an agent", {200: agent.AgentAnswer}, errors=NO_AGENT),
    Endpoint("PUT", A, agents.update, "Change some fields of an agent", {200: agent.AgentAnswer},
             body=agent.AgentUpdate, errors=(*NO_AGENT, E.NO_UPDATES, E.INVALID_AGENT_PROFILE)),
    Endpoint("DELETE", A, agents.delete, "Delete an agent", {200: agent.AgentDeleted},
             query={"force": "true: even if it is bound to a surface."}, errors=(*NO_AGENT, E.DELETE_BLOCKED)),
    Endpoint("GET", "/v1/models", models.list_all, "List the agents as models", {200: agent.ModelList}),
    Endpoint("GET", "/v1/models/{model}", models.show, "Show an agent as a model", {200: agent.ModelAnswer},
             errors=(*NO_AGENT, E.MODEL_NOT_FOUND)),
    Endpoint("GET", "/v1/rag-agent/models", models.list_all, "List the agents as models", {200: agent.ModelList}),

    Endpoint("POST", "/v1/search", searches.post, "Search buckets", {200: searching.SearchPage},
             body=searching.SearchRequest, reads=True, errors=(*SEARCH, *AGENTS, E.METADATA_FILTER_TOO_LARGE)),
    Endpoint("GET", "/v1/search", searches.get, "Search buckets", {200: searching.SearchPage},
             query=FIND, errors=(*SEARCH, *AGENTS, E.METADATA_FILTER_TOO_LARGE)),

    Endpoint("POST", "/v1/responses", responses.create, "Answer a question, as OpenAI's Responses do",
             {200: responding.Response}, body=responding.ResponseCreate, reads=True, streams=True, errors=ANSWER),
    Endpoint("POST", "/v1/chat/completions", completions.create, "Answer a question, as OpenAI's chat does",
             {200: completing.Completion}, body=completing.CompletionCreate, reads=True, streams=True, errors=ANSWER),
)
# fmt: on


def create_app(hardening: Hardening, limits: Limits, lifespan: Lifespan) -> Starlette:
    """The application; `lifespan` sets in its state what handlers take from there.

    That is `context`, `extractor`, `installation_id`, `operator_token` and `started_s`.
    """
    app = Starlette(
        routes=[
            *(Route(row.path, serving(row), methods=[row.method], name=row.name) for row in ENDPOINTS),
            *admin.ROUTES,
            mcp.route(),
        ],
        middleware=middleware(hardening, {row.path: row.successor for row in ENDPOINTS if row.successor}),
        exception_handlers=EXCEPTION_HANDLERS,
        lifespan=lifespan,
    )
    # A redirect would have an empty body; an unknown path gets the envelope instead.
    app.router.redirect_slashes = False
    # Made when it is first asked for: it takes 0.2 s, and most daemons are never asked.
    app.state.openapi = cache(partial(describe, ENDPOINTS, limits))
    #: Set when the server begins to stop: who waits for something ends then.
    app.state.stopping = asyncio.Event()
    return app
