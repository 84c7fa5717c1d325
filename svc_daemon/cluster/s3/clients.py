"""The client of the S3 store. No other module uses obstore.

obstore finds the credentials in the usual AWS variables or on the machine. Errors show only class and HTTP status, so
that no credentials get into logs.
"""

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from svc_daemon.errors import StorageError, StoreUnavailable
from svc_daemon.wire.light.extras import install_command

log = logging.getLogger(__name__)

T = TypeVar("T")

#: Large objects are sent in parts of this size; S3 requires at least 5 MB.
CHUNK_BYTES = 8 * 1024 * 1024
#: Number of parts of one object that are sent at once. Each part takes `CHUNK_BYTES` of memory.
CHUNKS_AT_ONCE = 2
#: Number of bytes per read of a stream.
READ_BYTES = 1024 * 1024
#: Number of objects per page of a listing. S3 returns at most this many.
PAGE_OBJECTS = 1000
#: Timeouts in seconds: to connect, and to send `CHUNK_BYTES` or receive the next bytes.
CONNECT_S, SILENT_S = 3, 20
#: How long a request for a mark may take, in seconds.
ANSWER_S = 10
#: How long to retry a request, in seconds, before the client gets status 503.
RETRY_S = 10
#: Environment variables for the URL of the S3 service. The first one that is set is used.
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_CONFIGURED = (
    *_ENDPOINTS,
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_VIRTUAL_HOSTED_STYLE_REQUEST",
)
#: The folder of the objects whose names are the marks of installations, and what is in each.
MARKS, MARK_TEXT = "marks", b"The objects beside this folder belong to one installation of svc. Do not remove it.\n"
_BACKOFF: Any = {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=2), "base": 2}
_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>(\w{1,50})</Code>")
#: The name of this engine for programs.
ENGINE = "s3"
_MESSAGE = "The S3 store can't be used: {}."
#: What a part of obstore's error text, in small letters, means.
_CAUSES = {
    # obstore asks the machine for the key of its role if the variables have none.
    "//169.254.": "there is no key for it, neither in AWS_ACCESS_KEY_ID nor from a role of this machine",
    "<code>nosuchbucket": "its bucket does not exist",
    "<code>requesttimetooskewed": "it refuses requests, because the clock of this machine is wrong",
    "status code: 401": "it refuses the key of this node",
    "status code: 403": "it refuses the key of this node",
    "dns error": "its name can't be resolved",
    "failed to lookup": "its name can't be resolved",
    "invalid peer certificate": "its certificate is not trusted",
    "connection refused": "it refuses connections",
    "timed out": "it does not answer in time",
    "error sending request": "it does not answer",
}


@dataclass(frozen=True, slots=True)
class ListedObject:
    """Key, size and date of an object, as listed by S3."""

    key: str
    size_bytes: int
    modified_at: datetime


class ObjectClient:
    """The objects with a common prefix in one S3 bucket.

    `asking` is the same store without retries, for questions whose answers nobody should wait long for.

    Methods raise StoreUnavailable if the store doesn't answer. A cancelled method still waits for the answer, so that
    nothing is stored after it has returned.
    """

    def __init__(self, obstore: Any, store: Any, asking: Any) -> None:
        self._obstore = obstore
        self._store = store
        self._marks = StoreMarks(obstore, asking)
        self._errors: type[Exception] = obstore.exceptions.BaseError
        #: Raises WrongEngine unless the store is the installation's. Called before the first request.
        self.admit: Callable[[StoreMarks], object] = StoreMarks.list_marks
        self._is_admitted = False

    async def put(self, key: str, content: bytes | Path | AsyncIterator[bytes]) -> None:
        """Store an object. The length of the content may be unknown."""
        options = {"chunk_size": CHUNK_BYTES, "max_concurrency": CHUNKS_AT_ONCE}
        try:
            await self._finish(lambda: self._obstore.put_async(self._store, key, content, **options))
        except FileNotFoundError as error:
            raise StoreUnavailable(_MESSAGE.format("it does not know the bucket"), ENGINE) from error

    async def copy(self, key: str, new_key: str) -> None:
        """Copy an object, replacing any at the new key. Raises FileNotFoundError."""
        await self._finish(lambda: self._obstore.copy_async(self._store, key, new_key))

    async def find(self, key: str) -> ListedObject | None:
        try:
            found = await self._finish(lambda: self._obstore.head_async(self._store, key))
        except FileNotFoundError:
            return None
        return ListedObject(key, found["size"], found["last_modified"])

    async def read(self, key: str, first: int, end: int) -> bytes:
        """Read the bytes from `first` up to `end` (exclusive), or fewer. Raises FileNotFoundError."""
        return bytes(await self._finish(lambda: self._obstore.get_range_async(self._store, key, start=first, end=end)))

    async def stream(self, key: str, first: int = 0) -> AsyncIterator[bytes]:
        """Read the bytes from offset `first`. Raises FileNotFoundError."""
        with self._translated():
            await asyncio.to_thread(self._check_mark)
            options = {"range": {"offset": first}} if first else None
            try:
                found = await self._obstore.get_async(self._store, key, options=options)
            except FileNotFoundError:
                await asyncio.to_thread(self.check_reachable)
                raise
            async for chunk in found.stream(min_chunk_size=READ_BYTES):
                yield bytes(chunk)

    async def list(self, prefix: str) -> Sequence[ListedObject]:
        """List all objects in the folder `prefix`."""
        return _listed(await self._finish(lambda: self._obstore.list(self._store, prefix).collect_async()))

    async def list_page(self, after: str) -> Sequence[ListedObject]:
        """List at most `PAGE_OBJECTS` objects with keys above `after`."""

        async def next_page() -> Any:
            async for page in self._obstore.list(self._store, offset=after or None, chunk_size=PAGE_OBJECTS):
                return page
            return ()

        return _listed(await self._finish(next_page))

    def list_all(self, prefix: str) -> Iterator[ListedObject]:
        """List all objects in the folder `prefix`. Blocking."""
        with self._translated():
            self._check_mark()
            for page in self._obstore.list(self._store, prefix):
                yield from _listed(page)

    async def delete(self, keys: Sequence[str]) -> None:
        """Delete objects. Missing ones are ignored."""
        if keys:
            await self._finish(lambda: self._obstore.delete_async(self._store, list(keys)))

    def check_reachable(self) -> None:
        """Raise StoreUnavailable unless the store answers and is the installation's. Blocking."""
        self._is_admitted = False
        with self._translated():
            self._check_mark()

    def on_marks(self, work: Callable[["StoreMarks"], T]) -> T:
        """Call `work` with the marks in the store, without a check of the mark. Blocking."""
        with self._translated():
            return work(self._marks)

    def _check_mark(self) -> None:
        if not self._is_admitted:
            self.admit(self._marks)
            self._is_admitted = True

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn obstore's errors into StoreUnavailable, without their texts, which contain addresses."""
        try:
            yield
        except self._errors as error:
            cause = _find_cause(str(error))
            log.debug("the object store does not answer or refuses: %s", cause)
            # With `from error`, the log would contain the original text.
            raise StoreUnavailable(_MESSAGE.format(cause), ENGINE) from None

    async def _finish(self, request: Callable[[], Awaitable[T]]) -> T:
        async def work() -> T:
            with self._translated():
                if not self._is_admitted:
                    await asyncio.to_thread(self._check_mark)
                try:
                    return await request()
                except FileNotFoundError:
                    # The answer is the same if the whole bucket is gone, so look for the mark.
                    await asyncio.to_thread(self.check_reachable)
                    raise

        running = asyncio.create_task(work())
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.wait([running])
            # Otherwise, asyncio logs that the exception was never retrieved.
            if not running.cancelled():
                running.exception()
            raise


class StoreMarks:
    """The marks of installations in the object store (see `cluster.marks`). Raises obstore's errors."""

    def __init__(self, obstore: Any, store: Any) -> None:
        self._obstore = obstore
        self._store = store

    def list_marks(self) -> list[str]:
        found = self._obstore.list(self._store, MARKS).collect()
        return [each["path"].rpartition("/")[2] for each in found]

    def has_mark(self, mark: str) -> bool:
        try:
            # Unlike that to a HEAD, the answer to a GET says if the whole bucket is gone.
            self._obstore.get(self._store, f"{MARKS}/{mark}")
        except FileNotFoundError:
            return False
        return True

    def put_mark(self, mark: str) -> None:
        self._obstore.put(self._store, f"{MARKS}/{mark}", MARK_TEXT)

    def has_any(self, source_ids: Sequence[str], team_ids: Sequence[str]) -> bool:  # noqa: ARG002 - it has no teams
        folders = [f"blobs/{source_id[-2:]}/{source_id}" for source_id in source_ids] or ["blobs"]
        return any(page for folder in folders for page in self._obstore.list(self._store, folder, chunk_size=1))


def open_client(url: str, environ: Mapping[str, str]) -> ObjectClient:
    """Create a client for `s3://bucket/prefix`, without sending a request.

    Raises StorageError if the optional dependency is missing. Server certificates are always checked, against the
    authorities in SSL_CERT_FILE if set.
    """
    try:
        # Imported here, because it is an optional dependency.
        import obstore  # noqa: PLC0415
        from obstore.store import S3Store  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise StorageError(f"An object store needs the extra 'cluster'. Run {install_command('cluster')}.") from error
    address = urlsplit(url)
    endpoint = next((environ[name] for name in _ENDPOINTS if environ.get(name)), "")
    config: Any = {name.lower(): environ[name] for name in _CONFIGURED if environ.get(name)}
    if environ.get("AWS_PROFILE") and not environ.get("AWS_ACCESS_KEY_ID"):
        log.warning("AWS_PROFILE has no effect: the files in ~/.aws are not read")
    authorities = environ.get("SSL_CERT_FILE")
    trusted = {"root_certificate": Path(authorities).read_bytes()} if authorities else {}

    def open_store(retries: int, most: timedelta) -> Any:
        return S3Store(
            address.netloc,
            prefix=address.path.strip("/") or None,
            config=config,
            client_options={
                # Allow plain HTTP only if the endpoint's URL begins with it, as in tests.
                "allow_http": endpoint.startswith("http://"),
                "connect_timeout": timedelta(seconds=CONNECT_S),
                "read_timeout": timedelta(seconds=SILENT_S),
                "timeout": most,
                **trusted,
            },
            retry_config={"max_retries": retries, "retry_timeout": timedelta(seconds=RETRY_S), "backoff": _BACKOFF},
        )

    # A large object may take minutes. `read_timeout` ends requests that stall.
    store = open_store(5, timedelta(minutes=10))
    return ObjectClient(obstore, store, asking=open_store(0, timedelta(seconds=ANSWER_S)))


def _find_cause(text: str) -> str:
    """Say what is wrong, from the text of obstore's error, without any address in it."""
    cause = next((cause for part, cause in _CAUSES.items() if part in text.lower()), None)
    status, code = _STATUS.search(text), _CODE.search(text)
    if status is None:
        return cause or "it does not answer"
    return f"{cause or 'it fails'} (status {status[1]}{f', {code[1]}' if code else ''})"


def _listed(page: Iterable[Mapping[str, Any]]) -> Sequence[ListedObject]:
    return [ListedObject(found["path"], found["size"], found["last_modified"]) for found in page]
