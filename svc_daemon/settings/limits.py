"""All limits of the daemon, with units and defaults.

The environment variable of a limit consists of `SVC_LIMIT_` and the field's name in upper case, such as
`SVC_LIMIT_FILE_BYTES`.
"""

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any

from svc_daemon.wire.light.local_daemons import FREE_DISK_BYTES


class SettingError(ValueError):
    """An environment variable has an invalid value. The message names the variable and the valid values."""


#: Maximum of every limit. Clocks, the kernel and SQLite can't handle more.
LARGEST = 10**15
#: Maximum duration (a hundred years), so that dates stay valid.
LONGEST_S = 36_500 * 86_400


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits on callers, files, documents and requests.

    Each limit is at least 1, unless the field's metadata has another `least`.
    """

    #: Maximum size of a file: 25 MB, as the specification counts.
    file_bytes: int = field(default=26_214_400, metadata={"unit": "bytes"})
    #: Maximum number of create requests per team and second. 0 disables the limit.
    creates_per_second: int = field(default=5, metadata={"unit": "creates per second", "least": 0})
    #: Maximum number of bytes that a team may upload in 60 seconds. 0 disables the limit.
    bytes_per_minute: int = field(default=4 * 1024**3, metadata={"unit": "bytes", "least": 0})
    #: Maximum size of a source's metadata as JSON (specification, Limits).
    metadata_bytes: int = field(default=8192, metadata={"unit": "bytes"})
    #: Maximum number of files in a batch (specification, Limits).
    batch_files: int = field(default=100, metadata={"unit": "files"})
    #: Maximum size of a batch sent in one request (a pack). 0 disables packs.
    pack_bytes: int = field(default=256 * 1024**2, metadata={"unit": "bytes", "least": 0})
    #: Maximum number of buckets that a create request may name.
    destination_buckets: int = field(default=100, metadata={"unit": "buckets"})
    #: Time from an upload session's last accepted chunk until it expires.
    session_idle_seconds: int = field(default=3600, metadata={"unit": "seconds", "most": LONGEST_S})
    #: Maximum lifetime of an upload session or a batch.
    session_seconds: int = field(default=86_400, metadata={"unit": "seconds", "most": LONGEST_S})
    #: Maximum time that a request spends on finalizing a batch. Files that are not finalized by then stay pending.
    finalize_seconds: int = field(default=20, metadata={"unit": "seconds"})
    #: Maximum number of tags of a source (specification, Limits).
    tags: int = field(default=20, metadata={"unit": "tags", "least": 0})
    #: Maximum length of a tag.
    tag_characters: int = field(default=64, metadata={"unit": "characters"})
    #: Maximum length of a title.
    title_characters: int = field(default=1024, metadata={"unit": "characters"})
    #: Maximum length of an idempotency key; the same as Stripe's.
    idempotency_key_characters: int = field(default=255, metadata={"unit": "characters"})
    #: How long an idempotency key and its response are kept.
    idempotency_days: int = field(default=7, metadata={"unit": "days", "most": 36_500})
    #: How long finished tasks, sessions, batches and old webhook deliveries are kept.
    history_days: int = field(default=30, metadata={"unit": "days", "most": 36_500})
    #: How long events are kept.
    event_days: int = field(default=7, metadata={"unit": "days", "most": 36_500})
    #: Maximum number of sources that a request may look up by id.
    lookup_sources: int = field(default=200, metadata={"unit": "sources"})
    #: How long a stored file is kept after it was moved aside because the database had no row for it.
    set_aside_days: int = field(default=30, metadata={"unit": "days", "most": 36_500})
    #: Maximum size of a JSON request body.
    json_bytes: int = field(default=1024 * 1024, metadata={"unit": "bytes"})
    #: Maximum number of rows in one page of a list.
    page_rows: int = field(default=1000, metadata={"unit": "rows"})
    #: Number of unsuccessful attempts after which a task fails.
    task_attempts: int = field(default=3, metadata={"unit": "attempts"})
    #: Time without a heartbeat after which a running task's lease expires, so that the task can be started again.
    lease_seconds: int = field(default=30, metadata={"unit": "seconds"})
    #: Maximum length of a search query.
    query_characters: int = field(default=10_000, metadata={"unit": "characters"})
    #: Maximum number of results of a search.
    search_results: int = field(default=50, metadata={"unit": "results"})
    #: Maximum number of sources that a search may name.
    search_sources: int = field(default=200, metadata={"unit": "sources"})
    #: Time after which a search is interrupted.
    search_seconds: int = field(default=10, metadata={"unit": "seconds"})
    #: Maximum memory for the vectors that semantic search caches. Each passage needs 80 bytes.
    vector_memory_bytes: int = field(default=128 * 1024**2, metadata={"unit": "bytes"})
    #: Maximum number of imported vectors that are stored for a team until they are used. 0 stores none.
    offered_vectors: int = field(default=50_000, metadata={"unit": "vectors", "least": 0})
    #: Maximum total of answers and searches per team and calendar month (UTC). 0 disables the limit.
    answers_per_month: int = field(default=0, metadata={"unit": "answers per month", "least": 0})
    #: Maximum number of agents of a team besides the default one. 0 disables the limit.
    agents: int = field(default=100, metadata={"unit": "agents", "least": 0})
    #: Timeout for connecting to the server of the language model.
    llm_connect_seconds: int = field(default=5, metadata={"unit": "seconds"})
    #: Timeout for the first word of a model's answer.
    llm_first_word_seconds: int = field(default=60, metadata={"unit": "seconds"})
    #: Maximum pause between two words of a model's answer.
    llm_silent_seconds: int = field(default=30, metadata={"unit": "seconds"})
    #: Timeout for a model's whole answer.
    llm_seconds: int = field(default=300, metadata={"unit": "seconds"})
    #: Maximum length of an answer written by a model.
    llm_answer_characters: int = field(default=50_000, metadata={"unit": "characters"})
    #: Maximum memory of the process that extracts a document.
    extract_memory_bytes: int = field(default=1024**3, metadata={"unit": "bytes"})
    #: Maximum processor time for extracting a document.
    extract_cpu_seconds: int = field(default=30, metadata={"unit": "seconds"})
    #: Maximum elapsed time for extracting a document.
    extract_wall_seconds: int = field(default=60, metadata={"unit": "seconds"})
    #: Maximum number of pages of a document on which text is recognised.
    ocr_pages: int = field(default=200, metadata={"unit": "pages"})
    #: Maximum memory of the process that recognises text.
    ocr_memory_bytes: int = field(default=1536 * 1024**2, metadata={"unit": "bytes"})
    #: Maximum processor time for recognising a page.
    ocr_page_seconds: int = field(default=60, metadata={"unit": "seconds"})
    #: Number of texts that an installed model embeds at once; 0 uses all cores.
    embed_threads: int = field(default=0, metadata={"unit": "threads", "least": 0})
    #: Timeout for a call to an embedding server, with its retries.
    embed_seconds: int = field(default=60, metadata={"unit": "seconds"})
    #: Maximum number of concurrent processes that extract large documents. Small documents have the same maximum. In
    #: total, at most one process more than this runs.
    extract_children: int = field(default=2, metadata={"unit": "processes"})
    #: Timeout for fetching a URL, including redirects.
    fetch_seconds: int = field(default=30, metadata={"unit": "seconds"})
    #: Maximum number of redirects to follow. 0 follows none.
    redirects: int = field(default=5, metadata={"unit": "redirects", "least": 0})
    #: Shortest interval at which a source is fetched again by itself, and the first pause after that has failed.
    refresh_seconds: int = field(default=900, metadata={"unit": "seconds", "most": 31_622_400})
    #: Timeout for a webhook call; Standard Webhooks recommends 15 to 30 seconds.
    webhook_seconds: int = field(default=15, metadata={"unit": "seconds"})
    #: Time between a failed webhook call and its only retry.
    webhook_retry_seconds: int = field(default=5, metadata={"unit": "seconds"})
    #: How long the old webhook secret stays valid after a rotation.
    webhook_rotation_hours: int = field(default=24, metadata={"unit": "hours", "most": 876_000})
    #: Timeout for receiving the headers of a request.
    header_seconds: int = field(default=10, metadata={"unit": "seconds"})
    #: Minimum average speed of a request body, after its first ten seconds.
    body_bytes_per_second: int = field(default=4096, metadata={"unit": "bytes per second"})
    #: Timeout for a request body, whatever its speed.
    body_seconds: int = field(default=600, metadata={"unit": "seconds"})
    #: How long a stopping daemon may take to finish its running tasks or to queue them again.
    stop_seconds: int = field(default=10, metadata={"unit": "seconds"})
    #: Minimum free disk space for uploads and indexing, so that there is always space for deletions. If 2 % of the disk
    #: (at most 1 GB) is more, that is the minimum. 0 disables the check.
    free_disk_bytes: int = field(default=FREE_DISK_BYTES, metadata={"unit": "bytes", "least": 0})

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> "Limits":
        """Read the limits from `SVC_LIMIT_…` variables. Raises SettingError."""
        given = {limit.name: _whole_number(environ, limit) for limit in fields(cls)}
        return cls(**{name: value for name, value in given.items() if value is not None})


def variable(limit_name: str) -> str:
    """Return the environment variable of a limit."""
    return f"SVC_LIMIT_{limit_name.upper()}"


def _whole_number(environ: Mapping[str, str], limit: Field[Any]) -> int | None:
    name = variable(limit.name)
    text = environ.get(name)
    if not text:
        return None
    least, most = limit.metadata.get("least", 1), limit.metadata.get("most", LARGEST)
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(LARGEST))
    if not is_number or not least <= int(text) <= most:
        raise SettingError(f"{name} must be a whole number from {least} to {most}, not {text!r}.")
    return int(text)
