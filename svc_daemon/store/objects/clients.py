"""The client of the S3 store, and the only module that uses obstore.

It converts obstore's errors, and limits time and concurrency. obstore reads the credentials from the usual AWS
variables, or from the machine or pod on which the process runs. Errors are reported only by their class and HTTP
status, so that no credentials get into messages or logs.
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
from svc_daemon.wire.versions import install_command

log = logging.getLogger(__name__)

T = TypeVar("T")

#: Size of the parts in which large objects are stored; S3 requires at least 5 MB.
CHUNK_BYTES = 8 * 1024 * 1024
#: Number of parts of one object that are sent at the same time. Each takes `CHUNK_BYTES` of memory.
CHUNKS_AT_ONCE = 2
#: Number of bytes to read at a time when an object is streamed.
READ_BYTES = 1024 * 1024
#: Number of objects in a page of a listing; S3 returns no more in one answer.
PAGE_OBJECTS = 1000
#: How long to wait for a connection, and for the next bytes of an answer, in seconds. `SILENT_S` must be long
#: enough for sending `CHUNK_BYTES`.
CONNECT_S, SILENT_S = 3, 20
#: How long to retry a failed request, in seconds. After that, the daemon's client gets status 503.
RETRY_S = 10
#: Environment variables that can name the endpoint; the first one that is set is used.
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
_STATUS = re.compile(r"status code: (\d{3})")
_MESSAGE = "The object store does not answer or refuses; nothing was stored."


@dataclass(frozen=True, slots=True)
class ListedObject:
    """An entry in a listing of objects."""

    key: str
    size_bytes: int
    modified_at: datetime


class ObjectClient:
    """The objects with a common prefix in one S3 bucket. Methods raise StoreUnavailable if the store doesn't answer.

    Once a request was sent, it isn't abandoned: if the caller is cancelled, the method still waits for the answer, so
    that objects are never stored after the method has returned.
    """

    def __init__(self, obstore: Any, store: Any) -> None:
        self._obstore = obstore
        self._store = store
        self._errors: type[Exception] = obstore.exceptions.BaseError

    async def put(self, key: str, content: bytes | Path | AsyncIterator[bytes]) -> None:
        """Store an object. The content may be a stream of unknown length."""
        options = {"chunk_size": CHUNK_BYTES, "max_concurrency": CHUNKS_AT_ONCE}
        await self._finish(lambda: self._obstore.put_async(self._store, key, content, **options))

    async def copy(self, key: str, new_key: str) -> None:
        """Copy an object to another key, replacing what is there. Raises FileNotFoundError."""
        await self._finish(lambda: self._obstore.copy_async(self._store, key, new_key))

    async def find(self, key: str) -> ListedObject | None:
        try:
            found = await self._finish(lambda: self._obstore.head_async(self._store, key))
        except FileNotFoundError:
            return None
        return ListedObject(key, found["size"], found["last_modified"])

    async def read(self, key: str, first: int, end: int) -> bytes:
        """Read the bytes from `first` to `end` (exclusive); `end` may exceed the size. Raises FileNotFoundError."""
        return bytes(await self._finish(lambda: self._obstore.get_range_async(self._store, key, start=first, end=end)))

    async def stream(self, key: str, first: int = 0) -> AsyncIterator[bytes]:
        """Read the bytes from offset `first` to the end. If the object is missing, raises FileNotFoundError at once."""
        with self._translated():
            options = {"range": {"offset": first}} if first else None
            found = await self._obstore.get_async(self._store, key, options=options)
            async for chunk in found.stream(min_chunk_size=READ_BYTES):
                yield bytes(chunk)

    async def list(self, prefix: str) -> Sequence[ListedObject]:
        """List all objects in the folder (key prefix)."""
        return _listed(await self._finish(lambda: self._obstore.list(self._store, prefix).collect_async()))

    async def list_page(self, after: str) -> Sequence[ListedObject]:
        """List the next objects whose keys are greater than `after`, at most `PAGE_OBJECTS`; empty at the end."""

        async def next_page() -> Any:
            async for page in self._obstore.list(self._store, offset=after or None, chunk_size=PAGE_OBJECTS):
                return page
            return ()

        return _listed(await self._finish(next_page))

    def list_all(self, prefix: str) -> Iterator[ListedObject]:
        """List all objects in the folder (key prefix). Blocking."""
        with self._translated():
            for page in self._obstore.list(self._store, prefix):
                yield from _listed(page)

    async def delete(self, keys: Sequence[str]) -> None:
        """Delete objects; those that don't exist are ignored."""
        if keys:
            await self._finish(lambda: self._obstore.delete_async(self._store, list(keys)))

    def probe(self, key: str) -> None:
        """Check that the store answers a request for this key, whether or not the object exists. Blocking."""
        with self._translated():
            try:
                self._obstore.head(self._store, key)
            except FileNotFoundError:
                return

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Raise StoreUnavailable instead of obstore's errors, whose texts contain the store's addresses and answers."""
        try:
            yield
        except self._errors as error:
            status = _STATUS.search(str(error))
            about = f"{type(error).__name__}{f', status {status[1]}' if status else ''}"
            log.warning("the object store does not answer or refuses: %s", about)
            # With `from error`, the log would contain the text of the original error.
            raise StoreUnavailable(_MESSAGE) from None

    async def _finish(self, request: Callable[[], Awaitable[T]]) -> T:
        async def work() -> T:
            with self._translated():
                return await request()

        running = asyncio.create_task(work())
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.wait([running])
            # Read the exception, so that asyncio doesn't log that it was never retrieved: the caller was cancelled.
            if not running.cancelled():
                running.exception()
            raise


def open_client(url: str, environ: Mapping[str, str]) -> ObjectClient:
    """Create a client for `s3://bucket/prefix`, without sending a request yet.

    Raises StorageError if the optional dependency isn't installed. Certificates of servers are always checked. If
    SSL_CERT_FILE is set, the authorities in that file are used.
    """
    try:
        # Import obstore only here, because it is only installed with an optional extra.
        import obstore  # noqa: PLC0415
        from obstore.store import S3Store  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise StorageError(f"An object store needs the extra 'cluster'. Run {install_command('cluster')}.") from error
    address = urlsplit(url)
    endpoint = next((environ[name] for name in _ENDPOINTS if environ.get(name)), "")
    config: Any = {name.lower(): environ[name] for name in _CONFIGURED if environ.get(name)}
    authorities = environ.get("SSL_CERT_FILE")
    trusted = {"root_certificate": Path(authorities).read_bytes()} if authorities else {}
    store = S3Store(
        address.netloc,
        prefix=address.path.strip("/") or None,
        config=config,
        client_options={
            # Plain HTTP is only used if the configured endpoint begins with `http:`, as it does in tests.
            "allow_http": endpoint.startswith("http://"),
            "connect_timeout": timedelta(seconds=CONNECT_S),
            "read_timeout": timedelta(seconds=SILENT_S),
            # Storing a large object may take minutes. Requests that make no progress are ended earlier, by
            # `read_timeout`.
            "timeout": timedelta(minutes=10),
            **trusted,
        },
        retry_config={
            "max_retries": 5,
            "retry_timeout": timedelta(seconds=RETRY_S),
            "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=2), "base": 2},
        },
    )
    return ObjectClient(obstore, store)


def _listed(page: Iterable[Mapping[str, Any]]) -> Sequence[ListedObject]:
    return [ListedObject(found["path"], found["size"], found["last_modified"]) for found in page]
