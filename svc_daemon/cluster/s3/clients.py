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
from svc_daemon.wire.extras import install_command

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
_STATUS = re.compile(r"status code: (\d{3})")
_MESSAGE = "The object store does not answer or refuses; nothing was stored."


@dataclass(frozen=True, slots=True)
class ListedObject:
    """Key, size and date of an object, as listed by S3."""

    key: str
    size_bytes: int
    modified_at: datetime


class ObjectClient:
    """The objects with a common prefix in one S3 bucket.

    Methods raise StoreUnavailable if the store doesn't answer. A cancelled method still waits for the answer, so that
    nothing is stored after it has returned.
    """

    def __init__(self, obstore: Any, store: Any) -> None:
        self._obstore = obstore
        self._store = store
        self._errors: type[Exception] = obstore.exceptions.BaseError

    async def put(self, key: str, content: bytes | Path | AsyncIterator[bytes]) -> None:
        """Store an object. The length of the content may be unknown."""
        options = {"chunk_size": CHUNK_BYTES, "max_concurrency": CHUNKS_AT_ONCE}
        await self._finish(lambda: self._obstore.put_async(self._store, key, content, **options))

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
            options = {"range": {"offset": first}} if first else None
            found = await self._obstore.get_async(self._store, key, options=options)
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
            for page in self._obstore.list(self._store, prefix):
                yield from _listed(page)

    async def delete(self, keys: Sequence[str]) -> None:
        """Delete objects. Missing ones are ignored."""
        if keys:
            await self._finish(lambda: self._obstore.delete_async(self._store, list(keys)))

    def probe(self, key: str) -> None:
        """Check that the store answers a request for this key. The key need not exist. Blocking."""
        with self._translated():
            try:
                self._obstore.head(self._store, key)
            except FileNotFoundError:
                return

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn obstore's errors into StoreUnavailable, without their texts, which may reveal addresses."""
        try:
            yield
        except self._errors as error:
            status = _STATUS.search(str(error))
            about = f"{type(error).__name__}{f', status {status[1]}' if status else ''}"
            log.warning("the object store does not answer or refuses: %s", about)
            # With `from error`, the log would contain the original text.
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
            # Otherwise, asyncio logs that the exception was never retrieved.
            if not running.cancelled():
                running.exception()
            raise


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
    authorities = environ.get("SSL_CERT_FILE")
    trusted = {"root_certificate": Path(authorities).read_bytes()} if authorities else {}
    store = S3Store(
        address.netloc,
        prefix=address.path.strip("/") or None,
        config=config,
        client_options={
            # Allow plain HTTP only if the endpoint's URL begins with it, as in tests.
            "allow_http": endpoint.startswith("http://"),
            "connect_timeout": timedelta(seconds=CONNECT_S),
            "read_timeout": timedelta(seconds=SILENT_S),
            # A large object may take minutes. `read_timeout` ends requests that stall.
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
