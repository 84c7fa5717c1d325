"""The client of the S3 store: the only user of obstore. Translates its errors, and limits time and concurrency.

Credentials are read by obstore from the usual AWS variables, or from the machine or pod that it runs on. They are in no
error and no log line: errors of the store are reported by their class and HTTP status alone.
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

#: Size of the parts in which large objects are stored; S3 wants 5 MB at least.
CHUNK_BYTES = 8 * 1024 * 1024
#: Number of parts of one object that are sent at the same time; each takes `CHUNK_BYTES` of memory.
CHUNKS_AT_ONCE = 2
#: Number of bytes to read at a time when an object is streamed.
READ_BYTES = 1024 * 1024
#: Number of objects in a page of a listing; S3 returns no more in one answer.
PAGE_OBJECTS = 1000
#: How long to wait for a connection, and for the next bytes of an answer, in seconds. The latter includes the time in
#: which `CHUNK_BYTES` are sent.
CONNECT_S, SILENT_S = 3, 20
#: How long a failed request is tried again, in seconds. The caller answers 503 after it.
RETRY_S = 10
#: Variables that name the endpoint, most specific first.
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
    """An object in a listing."""

    key: str
    size_bytes: int
    modified_at: datetime


class ObjectClient:
    """The objects below the prefix of one bucket. Methods raise StoreUnavailable if the store doesn't answer.

    Requests that were begun are never abandoned halfway: if the caller is cancelled, a method waits for the answer, so
    that nobody lists objects that are still being stored.
    """

    def __init__(self, obstore: Any, store: Any) -> None:
        self._obstore = obstore
        self._store = store
        self._errors: type[Exception] = obstore.exceptions.BaseError

    async def put(self, key: str, content: bytes | Path | AsyncIterator[bytes]) -> None:
        """Store an object; a stream may have any length."""
        options = {"chunk_size": CHUNK_BYTES, "max_concurrency": CHUNKS_AT_ONCE}
        await self._finish(lambda: self._obstore.put_async(self._store, key, content, **options))

    async def copy(self, key: str, new_key: str) -> None:
        """Copy an object, replacing another one. Raises FileNotFoundError."""
        await self._finish(lambda: self._obstore.copy_async(self._store, key, new_key))

    async def find(self, key: str) -> ListedObject | None:
        try:
            found = await self._finish(lambda: self._obstore.head_async(self._store, key))
        except FileNotFoundError:
            return None
        return ListedObject(key, found["size"], found["last_modified"])

    async def read(self, key: str, first: int, end: int) -> bytes:
        """Read a range, `end` exclusive and perhaps beyond the last byte. Raises FileNotFoundError."""
        return bytes(await self._finish(lambda: self._obstore.get_range_async(self._store, key, start=first, end=end)))

    async def stream(self, key: str, first: int = 0) -> AsyncIterator[bytes]:
        """Read all bytes from an offset on. Raises FileNotFoundError before the first ones."""
        with self._translated():
            options = {"range": {"offset": first}} if first else None
            found = await self._obstore.get_async(self._store, key, options=options)
            async for chunk in found.stream(min_chunk_size=READ_BYTES):
                yield bytes(chunk)

    async def list(self, prefix: str) -> Sequence[ListedObject]:
        """List all objects below a prefix, which is a whole folder."""
        return _listed(await self._finish(lambda: self._obstore.list(self._store, prefix).collect_async()))

    async def list_page(self, after: str) -> Sequence[ListedObject]:
        """List the next objects whose keys are greater than `after`, at most `PAGE_OBJECTS`; none at the end."""

        async def next_page() -> Any:
            async for page in self._obstore.list(self._store, offset=after or None, chunk_size=PAGE_OBJECTS):
                return page
            return ()

        return _listed(await self._finish(next_page))

    def list_all(self, prefix: str) -> Iterator[ListedObject]:
        """List all objects below a prefix. Blocking."""
        with self._translated():
            for page in self._obstore.list(self._store, prefix):
                yield from _listed(page)

    async def delete(self, keys: Sequence[str]) -> None:
        """Delete objects; those that don't exist are ignored."""
        if keys:
            await self._finish(lambda: self._obstore.delete_async(self._store, list(keys)))

    def probe(self, key: str) -> None:
        """Check that the store answers; the object needn't exist. Blocking."""
        with self._translated():
            try:
                self._obstore.head(self._store, key)
            except FileNotFoundError:
                return

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Raise StoreUnavailable in place of errors of the library, whose texts contain addresses and answers."""
        try:
            yield
        except self._errors as error:
            status = _STATUS.search(str(error))
            about = f"{type(error).__name__}{f', status {status[1]}' if status else ''}"
            log.warning("the object store does not answer or refuses: %s", about)
            # Not `from error`: its text would be in the log with every traceback.
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
            # The caller is gone, so nobody else looks at the error.
            if not running.cancelled():
                running.exception()
            raise


def open_client(url: str, environ: Mapping[str, str]) -> ObjectClient:
    """Open `s3://bucket/prefix`. Nothing is requested yet. Raises StorageError if the extra isn't installed.

    Certificates are always checked, against the authorities in the file that SSL_CERT_FILE names.
    """
    try:
        # Imported late: it is installed only with the extra.
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
            # An endpoint without TLS must be asked for by name, as in tests on loopback.
            "allow_http": endpoint.startswith("http://"),
            "connect_timeout": timedelta(seconds=CONNECT_S),
            "read_timeout": timedelta(seconds=SILENT_S),
            # A large object takes long; `read_timeout` ends what hangs.
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
