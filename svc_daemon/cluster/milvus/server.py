"""The connection to Milvus. Only this module and `marks` use pymilvus.

A lost connection is opened again by the next call. Every call has a time limit, and fails with a retryable
ProviderFailed or SearchTimeout. Once a write has returned, every node reads it.
"""

import json
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlsplit

# Otherwise, pymilvus adds the variables of any file `.env` above its own folder to this process's environment.
os.environ["PYTHON_DOTENV_DISABLED"] = "1"

from grpc import FutureTimeoutError, RpcError
from pymilvus import MilvusClient
from pymilvus.exceptions import MilvusException

from svc_daemon.cluster.milvus.marks import IndexMarks, build_schema
from svc_daemon.cluster.milvus.schema import PARTITIONS, Collections, CollectionSpec, Row
from svc_daemon.errors import StorageError
from svc_daemon.provider.errors import ProviderError, ProviderFailed, SearchTimeout

T = TypeVar("T")

#: Maximum time of a call, in seconds.
CALL_S = 30.0
#: Maximum time to open the connection, in seconds; other calls wait meanwhile.
CONNECT_S = 5.0
#: Maximum time of a check whether Milvus can be reached, in seconds.
ANSWER_S = 10.0
#: For this many seconds after a failed connection, calls fail at once.
PAUSE_S = 1.0
#: Maximum number of rows per call: Milvus's limit.
MOST_ROWS = 16_384
#: Maximum rows and bytes of one insert. Milvus's message queue accepts 5 MB.
SLICE_ROWS, SLICE_BYTES = 500, 3_000_000
#: Maximum number of characters of Milvus's error text in our messages.
REASON_CHARACTERS = 300
#: What a part of pymilvus's error text, in small letters, means.
_CAUSES = {
    "connection refused": "it refuses connections",
    "fail connecting to server": "it does not answer, or refuses the token",
    "unauthenticated": "it refuses the token of this node",
    "auth check failure": "it refuses the token of this node",
    "permission": "it refuses the user of this node",
    "deadline exceeded": "it does not answer in time",
    "deadline_exceeded": "it does not answer in time",
    "statuscode.unavailable": "it does not answer",
    "server unavailable": "it does not answer",
}
#: Matches addresses of machines in error texts.
_ADDRESS = re.compile(r"ipv[46]:[^\s,;]+|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?|\[[0-9a-fA-F:%]+\](?::\d+)?")
#: Milvus's error codes for a collection that is missing or not loaded.
_NOT_THERE = (100, 101)


class MilvusServer:
    """The Milvus collections of one installation. Thread-safe."""

    def __init__(
        self,
        url: str,
        token: str = "",
        *,
        ca_file: str = "",
        prefix: str = "svc",
        partitions: int = PARTITIONS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare to use the Milvus at `url`, without connecting yet.

        An `https` URL uses TLS, checked with the authorities in `ca_file` or the public ones. Collections' names begin
        with `prefix`; teams are distributed over `partitions`. `clock` returns monotonic seconds.
        """
        self.collections = Collections(prefix)
        self.clock = clock
        self._url = url
        self._token = token
        self._ca_file = ca_file
        self._partitions = partitions
        self._lock = threading.Lock()
        self._opened: MilvusClient | None = None
        self._failed: tuple[float, ProviderError] | None = None
        self._is_closed = False
        #: Raises WrongEngine unless the Milvus is the installation's. Called with each new connection, and if
        #: collections are missing.
        self.admit: Callable[[IndexMarks], object] = IndexMarks.list_marks
        #: Vector collections that are known to exist.
        self._seen: set[str] = set()

    def insert(self, collection: str, rows: Sequence[Row]) -> None:
        """Insert rows with new ids."""
        for rows_of_call in _cut(rows):
            self._call("insert", collection, data=rows_of_call)

    def upsert(self, collection: str, rows: Sequence[Row]) -> None:
        """Insert rows, or replace rows with the same ids."""
        for rows_of_call in _cut(rows):
            self._call("upsert", collection, data=rows_of_call)

    def delete(self, collection: str, wanted: str) -> None:
        """Delete the rows that match the filter."""
        self._call("delete", collection, filter=wanted)

    def query(
        self,
        collection: str,
        wanted: str,
        fields: Sequence[str],
        *,
        limit: int = MOST_ROWS,
        deadline_s: float | None = None,
    ) -> list[Row]:
        """Return the fields of up to `limit` matching rows, in no particular order."""
        limit = min(limit, MOST_ROWS)
        rows = self._call(
            "query", collection, deadline_s=deadline_s, filter=wanted, output_fields=[*fields], limit=limit
        )
        return [dict(row) for row in rows]

    def count(self, collection: str, wanted: str, *, is_estimate: bool = False, deadline_s: float | None = None) -> int:
        """Count the matching rows. An estimate may miss the writes of the last few seconds.

        An exact count takes longer, because it waits until Milvus has processed all earlier writes.
        """
        level = "Bounded" if is_estimate else "Strong"
        rows = self._call(
            "query",
            collection,
            deadline_s=deadline_s,
            filter=wanted,
            output_fields=["count(*)"],
            consistency_level=level,
        )
        return int(rows[0]["count(*)"])

    def list_sorted(self, collection: str, wanted: str, fields: Sequence[str], page: int = 1000) -> Iterator[Row]:
        """List all matching rows, sorted by id."""
        rows = self._call("query_iterator", collection, filter=wanted, output_fields=[*fields], batch_size=page)
        try:
            while batch := self._translate(rows.next, None):
                yield from map(dict, batch)
        finally:
            rows.close()

    def search(
        self,
        collection: str,
        query: str | list[float],
        wanted: str,
        fields: Sequence[str],
        *,
        limit: int,
        deadline_s: float | None = None,
    ) -> list[tuple[float, Row]]:
        """Return up to `limit` matching rows with their scores, best first.

        A text is compared with the field `bm25`, and a vector is compared with the field `vector`.
        """
        is_text = isinstance(query, str)
        (hits,) = self._call(
            "search",
            collection,
            deadline_s=deadline_s,
            data=[query],
            anns_field="bm25" if is_text else "vector",
            search_params={"metric_type": "BM25" if is_text else "IP"},
            filter=wanted,
            output_fields=[*fields],
            limit=min(limit, MOST_ROWS),
        )
        # milvus-lite returns BM25 scores as negative numbers.
        return [(abs(hit["distance"]) if is_text else hit["distance"], dict(hit["entity"])) for hit in hits]

    def list_vector_collections(self) -> list[str]:
        """List the names of the collections of vectors."""
        return [*filter(self.collections.find_dimension, self._call("list_collections"))]

    def find_vectors(self, dimension: int) -> str | None:
        """Return the name of the collection for vectors of this dimension, or None."""
        name = self.collections.vectors(dimension)
        # Collections are never removed, so a name that was seen once stays valid.
        if name not in self._seen:
            self._seen.update(self.list_vector_collections())
        return name if name in self._seen else None

    def prepare_vectors(self, dimension: int) -> str:
        """Return the name of the collection for vectors of this dimension, creating it if necessary."""
        spec = self.collections.of_vectors(dimension)
        if self.find_vectors(dimension) is None:
            self._translate(lambda: self._provide(self._connect(None), spec, False), None)
        return spec.name

    def check_reachable(self) -> None:
        """Raise ProviderError if Milvus doesn't answer in time, or isn't the installation's."""
        until_s = self.clock() + ANSWER_S
        self._translate(lambda: self._check_mark(self._connect(until_s), self._left_s(until_s)), None)

    def on_marks(self, work: Callable[["IndexMarks"], T]) -> T:
        """Call `work` with the marks in Milvus, without a check of the mark or a change of the collections."""

        def run() -> T:
            with closing(self._log_in(CONNECT_S)) as client:
                return work(IndexMarks(client, self.collections, CONNECT_S))

        return self._translate(run, None)

    def close(self) -> None:
        """Close the connection. No method may be called afterwards."""
        with self._lock:
            self._is_closed = True
            if self._opened is not None:
                self._opened.close()
            self._opened = None

    def _call(self, method: str, *places: str, deadline_s: float | None = None, **values: Any) -> Any:
        """Call a method of pymilvus's client. If a collection is missing or not loaded, prepare it and try again."""

        def work() -> Any:
            client = self._connect(deadline_s)
            call = partial(getattr(client, method), *places, **values)
            try:
                return call(timeout=self._left_s(deadline_s))
            except MilvusException as error:
                if error.code not in _NOT_THERE:
                    raise
                self._prepare(client)
                return call(timeout=self._left_s(deadline_s))

        return self._translate(work, deadline_s)

    def _left_s(self, deadline_s: float | None) -> float:
        """Return how many seconds a call may take. Raises SearchTimeout after the deadline."""
        if deadline_s is None:
            return CALL_S
        left_s = min(CALL_S, deadline_s - self.clock())
        if left_s <= 0:
            raise SearchTimeout
        return left_s

    def _translate(self, work: Callable[[], T], deadline_s: float | None) -> T:
        """Run `work`, and convert pymilvus's exceptions."""
        try:
            return work()
        except (MilvusException, RpcError, FutureTimeoutError) as error:
            if deadline_s is not None and self.clock() >= deadline_s:
                raise SearchTimeout from error
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> ProviderFailed:
        reason = " ".join(str(error).split())
        if self._token:
            reason = reason.replace(self._token, "...")
        cause = next((cause for part, cause in _CAUSES.items() if part in reason.lower()), None)
        if isinstance(error, FutureTimeoutError):
            cause = _CAUSES["deadline_exceeded"]
        if cause is None:
            reason = _ADDRESS.sub("…", reason.replace(urlsplit(self._url).hostname or "…", "…"))
            cause = f"it fails ({reason[:REASON_CHARACTERS]})"
        return ProviderFailed(f"Milvus can't be used: {cause}.", retryable=True)

    def _connect(self, deadline_s: float | None) -> MilvusClient:
        """Return pymilvus's client, connecting it if necessary."""
        client = self._opened
        if client is not None:
            return client
        if not self._lock.acquire(timeout=self._left_s(deadline_s)):
            # Raises SearchTimeout if the deadline has passed.
            self._left_s(deadline_s)
            raise ProviderFailed("Milvus can't be used: it does not answer in time.", retryable=True)
        try:
            if self._is_closed:
                raise ProviderFailed("The search index is closed: the service is stopping.", retryable=True)
            if self._opened is None:
                if self._failed is not None and self.clock() - self._failed[0] < PAUSE_S:
                    raise self._failed[1]
                self._opened = self._open(min(CONNECT_S, self._left_s(deadline_s)))
            return self._opened
        finally:
            self._lock.release()

    def _open(self, limit_s: float) -> MilvusClient:
        try:
            client = self._log_in(limit_s)
        except (MilvusException, OSError) as error:
            failure = self._failure(error)
            self._failed = self.clock(), failure
            raise failure from error
        try:
            self._prepare(client)
        except BaseException:
            client.close()
            raise
        return client

    def _log_in(self, limit_s: float) -> MilvusClient:
        # Callers log failures. pymilvus would log each failure again, with a traceback.
        logging.getLogger("pymilvus").setLevel(logging.CRITICAL + 1)
        return MilvusClient(
            self._url, token=self._token, timeout=limit_s, dedicated=True, server_pem_path=self._ca_file
        )

    def _prepare(self, client: MilvusClient) -> None:
        """Create the missing collections, and load all collections, if the Milvus is the installation's."""
        self._check_mark(client, CALL_S)
        existing = client.list_collections(timeout=CALL_S)
        dimensions = [dimension for name in existing if (dimension := self.collections.find_dimension(name))]
        for spec in [*self.collections.list_fixed(), *map(self.collections.of_vectors, dimensions)]:
            self._provide(client, spec, spec.name in existing)

    def _check_mark(self, client: MilvusClient, limit_s: float) -> None:
        try:
            self.admit(IndexMarks(client, self.collections, limit_s))
        except StorageError as error:
            raise ProviderFailed(error.message, retryable=True) from error

    def _provide(self, client: MilvusClient, spec: CollectionSpec, exists: bool) -> None:
        """Create a collection and its indexes if missing, and load it. Another node may do so at the same time."""
        if not exists:
            options = {"num_partitions": self._partitions, "consistency_level": "Strong", "timeout": CALL_S}
            _make(
                lambda: client.create_collection(spec.name, schema=build_schema(client, spec), **options),
                lambda: client.has_collection(spec.name, timeout=CALL_S),
            )
        # milvus-lite, which tests use, has no index for arrays.
        is_lite = "lite" in client.get_server_version(timeout=CALL_S)
        for each in spec.fields:
            if each.index is None or (is_lite and each.type == "ARRAY"):
                continue
            is_there = partial(client.list_indexes, spec.name, field_name=each.name, timeout=CALL_S)
            if not is_there():
                index = client.prepare_index_params()
                index.add_index(each.name, **each.index)
                _make(partial(client.create_index, spec.name, index, timeout=CALL_S), is_there)
        client.load_collection(spec.name, timeout=CALL_S)


def _make(create: Callable[[], object], is_there: Callable[[], object]) -> None:
    """Create something that another node may be creating too; `is_there` checks whether it exists."""
    try:
        create()
    except MilvusException:
        if not is_there():
            raise


def _cut(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Split rows into slices for one call each."""
    part: list[Row] = []
    size = 0
    for row in rows:
        row_bytes = len(json.dumps(row, ensure_ascii=False, default=str).encode())
        if part and (len(part) == SLICE_ROWS or size + row_bytes > SLICE_BYTES):
            yield part
            part, size = [], 0
        part.append(row)
        size += row_bytes
    if part:
        yield part
