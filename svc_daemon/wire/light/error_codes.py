"""Error codes, by which programs distinguish errors.

`svc_daemon.errors` has the HTTP status of each code. This module doesn't import pydantic, so that the command line
starts fast.
"""

from enum import StrEnum


class ErrorCode(StrEnum):
    """Stable error codes. Programs should check these, since messages may change."""

    INVALID_PROJECT_KEY = "invalid_project_key"
    FORBIDDEN_PROJECT_KEY = "forbidden_project_key"
    BUCKET_REQUIRED = "bucket_required"
    BUCKET_NOT_FOUND = "bucket_not_found"
    BUCKET_ASSIGNMENT_FAILED = "bucket_assignment_failed"
    BUCKET_SLUG_EXISTS = "bucket_slug_exists"
    EMPTY_FILE = "empty_file"
    FILE_TOO_LARGE = "file_too_large"
    URL_IS_WEB_PAGE = "url_is_web_page"
    URL_IS_FILE = "url_is_file"
    URL_FETCH_BLOCKED = "url_fetch_blocked"
    URL_FETCH_FAILED = "url_fetch_failed"
    WEBSITE_URL_EXISTS = "website_url_exists"
    WEBSITE_ANALYSIS_FAILED = "website_analysis_failed"
    IDEMPOTENCY_KEY_CONFLICT = "idempotency_key_conflict"
    INVALID_IDEMPOTENCY_KEY = "invalid_idempotency_key"
    REQUEST_IN_PROGRESS = "request_in_progress"
    TEAM_STORE_MAINTENANCE = "team_store_maintenance"
    BUCKET_STORE_INDEXING_PENDING = "bucket_store_indexing_pending"
    MODEL_NOT_FOUND = "model_not_found"
    AGENT_NOT_FOUND = "agent_not_found"
    SEARCH_TIMEOUT = "search_timeout"
    SEARCH_FAILED = "search_failed"
    SEARCH_DISABLED = "search_disabled"
    ANSWER_FAILED = "answer_failed"
    ANSWER_TIMEOUT = "answer_timeout"
    DELETE_BLOCKED = "delete_blocked"
    FORCE_REQUIRED = "force_required"
    DELETE_IN_PROGRESS = "delete_in_progress"
    METADATA_FILTER_TOO_LARGE = "metadata_filter_too_large"
    RAG_QUOTA_EXCEEDED = "rag_quota_exceeded"
    AGENT_LIMIT_REACHED = "agent_limit_reached"
    NO_UPDATES = "no_updates"
    INVALID_AGENT_PROFILE = "invalid_agent_profile"
    AGENT_REPLAY_CHECK_UNAVAILABLE = "agent_replay_check_unavailable"
    UPLOAD_RATE_LIMITED = "upload_rate_limited"
    INTERNAL_ERROR = "internal_error"
    INVALID_REQUEST = "invalid_request"
    INVALID_JSON = "invalid_json"
    CHECKSUM_MISMATCH = "checksum_mismatch"
    SIZE_MISMATCH = "size_mismatch"
    METADATA_TOO_LARGE = "metadata_too_large"
    TOO_MANY_TAGS = "too_many_tags"
    NOT_FOUND = "not_found"
    SOURCE_NOT_FOUND = "source_not_found"
    TASK_NOT_FOUND = "task_not_found"
    BATCH_NOT_FOUND = "batch_not_found"
    SESSION_NOT_FOUND = "session_not_found"
    KEY_NOT_FOUND = "key_not_found"
    ORIGIN_NOT_ALLOWED = "origin_not_allowed"
    MODEL_NOT_ALLOWED = "model_not_allowed"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    BLOB_NOT_UPLOADED = "blob_not_uploaded"
    OFFSET_MISMATCH = "offset_mismatch"
    SESSION_EXPIRED = "session_expired"
    SESSION_CANCELED = "session_canceled"
    EVENTS_EXPIRED = "events_expired"
    REQUEST_TIMEOUT = "request_timeout"
    HOST_NOT_ALLOWED = "host_not_allowed"
    HEADERS_TOO_LARGE = "headers_too_large"
    AGENT_EXISTS = "agent_exists"
    REQUEST_TOO_LARGE = "request_too_large"
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type"
    QUOTA_EXCEEDED = "quota_exceeded"
    STORAGE_FULL = "storage_full"
    SHUTTING_DOWN = "shutting_down"
    EXTRA_NOT_INSTALLED = "extra_not_installed"


class SourceErrorCode(StrEnum):
    """Why a source is `failed`. These codes are in `source.error.code`, never in an HTTP error."""

    #: The document contains no text. For example, it is a scanned PDF.
    NO_EXTRACTABLE_TEXT = "no_extractable_text"
    #: No extractor supports this media type.
    UNSUPPORTED_FORMAT = "unsupported_format"
    #: The bytes are not a valid document of their media type.
    DOCUMENT_UNREADABLE = "document_unreadable"
    #: The document needs a password.
    DOCUMENT_ENCRYPTED = "document_encrypted"
    #: Extraction exceeded a limit on time, memory or decompressed bytes.
    EXTRACTION_LIMIT_EXCEEDED = "extraction_limit_exceeded"
    #: The parser crashed on this document; the extraction is retried.
    EXTRACTION_CRASHED = "extraction_crashed"
    #: The search index refused or lost the document; indexing is retried.
    PROVIDER_FAILED = "provider_failed"
    #: The stored bytes are missing or damaged.
    STORED_BYTES_LOST = "stored_bytes_lost"
    #: The source's row in the database can't be read.
    ROW_DAMAGED = "row_damaged"
    #: All attempts at indexing were interrupted or failed; the message has the last reason.
    MAX_ATTEMPTS_EXHAUSTED = "max_attempts_exhausted"
