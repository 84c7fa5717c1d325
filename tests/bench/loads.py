"""What the benchmarks send: documents, folders and buckets of a wanted size, queries about them, and many requests.

The client of `send` is cheaper than any server that it measures: raw sockets in one process, each with one request.
"""

import json
import re
import selectors
import socket
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import cycle, islice
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlsplit

import httpx

from tests.acceptance.calls import list_sources, make_bucket, upload
from tests.acceptance.installations import Installation, wait_until
from tests.bench.harness import Row, spread_ms
from tests.corpus import Prose

BUCKET = "bench"
#: Of the documents that fill a bucket.
DOCUMENT_BYTES = 100_000
#: A word is common when it is in this share of the passages.
COMMON = (0.04, 0.06)
#: How long a bucket may take to be indexed.
FILL_TIMEOUT_S = 14_400.0
#: Each upload has its own number here, of as many digits: another document, under another key.
_PLACE = b"@@@@@@@@@@"
_WORD = re.compile(r"[a-z]{3,}")


def make_document(prose: Prose, size_bytes: int, title: str) -> bytes:
    parts, length = [f"# {title}\n\n"], 0
    while length < size_bytes:
        parts.append(f"## {prose.heading()}\n\n{prose.paragraph()}\n\n{prose.paragraph()}\n\n")
        length += len(parts[-1])
    return "".join(parts).encode()[:size_bytes]


def make_files(folder: Path, count: int, size_bytes: int) -> None:
    """Markdown files in subfolders of 100, each another."""
    text = " ".join(Prose("folders").paragraphs(1 + size_bytes // 100)).encode()
    for number in range(count):
        path = folder / f"{number // 100:03}" / f"{number % 100:02}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((b"# Note %06d\n\n" % number + text)[:size_bytes])


def fill_bucket(client: httpx.Client, bucket: str, passages: int) -> None:
    """Make a bucket, or go on with it, and upload until so many passages are indexed."""
    make_bucket(client, bucket)
    held = list_sources(client, bucket)
    number, stored = len(held), sum(source["extraction"]["chunks"] for source in held)
    # The sentences of the whole standard library take some ten seconds to find.
    prose = Prose(f"{bucket} {number}") if passages < 1000 else Prose(f"{bucket} {number}", packages=())
    while stored < passages:
        # About 100 passages a document: the missing ones, in steps that never overshoot by much.
        for _ in range(max(1, (passages - stored) // 130)):
            document = make_document(prose, DOCUMENT_BYTES, f"Document {number}")
            upload(client, bucket, f"{number}.md", document).raise_for_status()
            number += 1
        wait_until(lambda: is_indexed(client, bucket), f"the passages of {bucket}", FILL_TIMEOUT_S, every_s=0.5)
        stored = sum(source["extraction"]["chunks"] for source in list_sources(client, bucket))
        sys.stderr.write(f"{bucket}: {stored} passages\n")


def is_indexed(client: httpx.Client, bucket: str) -> bool:
    return not client.get(f"/v1/buckets/{bucket}").json()["bucketStore"]["pending_member_count"]


def make_queries(client: httpx.Client, bucket: str, count: int) -> list[str]:
    """Queries of 2 to 5 words of some 40 documents of a bucket: one common, the others as rare as they have them."""
    ids = [source["id"] for source in list_sources(client, bucket)]
    answers = [client.get(f"/v1/sources/{source_id}/text").json() for source_id in ids[:: max(1, len(ids) // 40)]]
    shares = _shares([chunk["text"] for answer in answers for chunk in answer["chunks"]])
    common = sorted(word for word, share in shares.items() if COMMON[0] <= share <= COMMON[1])
    rare = sorted(word for word, share in shares.items() if 0 < share < COMMON[0])
    random, queries = Random(5), []
    for _ in range(count):
        words = [random.choice(common), *random.sample(rare, random.randint(1, 4))]
        random.shuffle(words)
        queries.append(" ".join(words))
    return queries


def _shares(texts: Sequence[str]) -> dict[str, float]:
    """For each word the share of texts that have it, in any of the forms that stemming makes equal."""
    words = {word for text in texts for word in _WORD.findall(text.lower())}
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE VIRTUAL TABLE texts USING fts5 (text, tokenize = 'porter unicode61')")
        database.executemany("INSERT INTO texts VALUES (?)", ((text,) for text in texts))
        count = "SELECT count(*) FROM texts WHERE texts MATCH ?"
        return {word: database.execute(count, (f'"{word}"',)).fetchone()[0] / len(texts) for word in words}


def send_batch(client: httpx.Client, files: dict[str, bytes], *, is_packed: bool) -> None:
    """Create, fill and finalize a batch."""
    finalized = open_batch(client, files, is_packed=is_packed)().raise_for_status().json()["finalized"]
    assert len(finalized) == len(files)


def open_batch(client: httpx.Client, files: dict[str, bytes], *, is_packed: bool) -> Callable[[], httpx.Response]:
    """Create and fill a batch; what finalizes it."""
    path = f"/v1/buckets/{BUCKET}/batches"
    items = [{"client_file_id": name, "sha256": sha256(data).hexdigest()} for name, data in files.items()]
    sized = [{"client_file_id": n, "filename": f"{n}.md", "size_bytes": len(data)} for n, data in files.items()]
    body = {"pack": is_packed, "manifest": {"version": 1, "items": items}, "files": sized}
    opened = client.post(path, json=body).raise_for_status().json()
    targets = {opened["pack"]["upload_url"]: b"".join(files.values())} if is_packed else {}
    for item in [] if is_packed else opened["items"]:
        targets[item["upload_url"]] = files[item["client_file_id"]]
    for url, data in targets.items():
        client.put(urlsplit(url).path, content=data).raise_for_status()
    return lambda: client.post(f"{path}/{opened['batch_id']}/finalize")


def make_uploads(key: str, size_bytes: int, run: str) -> Callable[[int], bytes]:
    """Makes uploads of Markdown to the bucket; `run` keeps the keys of one run from those of another."""
    number, boundary = _PLACE.decode(), "bench-boundary"
    document = make_document(Prose("uploads"), size_bytes, f"Document {number}").decode()
    body = (
        f"--{boundary}\r\n"
        f'Content-Disposition: form-data; name="file"; filename="{run}-{number}.md"\r\n'
        f"Content-Type: text/markdown\r\n\r\n{document}\r\n--{boundary}--\r\n"
    ).encode()
    head = {"Idempotency-Key": f"{run}-{number}", "Content-Type": f"multipart/form-data; boundary={boundary}"}
    template = make_request(f"/v1/buckets/{BUCKET}/files", key, body, head)
    return lambda at: template.replace(_PLACE, b"%010d" % at)


def make_search(key: str, **body: Any) -> bytes:
    return make_request("/v1/search", key, json.dumps(body).encode(), {"Content-Type": "application/json"})


def make_request(path: str, key: str, body: bytes, headers: dict[str, str]) -> bytes:
    """A POST as it is sent to the loopback."""
    headers = {"Host": "127.0.0.1", "Authorization": f"Bearer {key}", "Content-Length": str(len(body)), **headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST {path} HTTP/1.1\r\n{lines}\r\n".encode() + body


@dataclass(frozen=True, slots=True)
class Load:
    """What some clients did together."""

    seconds: float
    latencies_s: list[float]
    #: Processor time of this client over wall time: well under 1, or the client was the limit.
    client_share: float

    def figures(self) -> Row:
        """Rate and latencies, rounded for a report."""
        rate = {"per_second": round(len(self.latencies_s) / self.seconds, 1)}
        return rate | spread_ms(self.latencies_s) | {"client_share": round(self.client_share, 2)}


@dataclass(slots=True)
class _Connection:
    socket: socket.socket
    sent_s: float = 0.0
    received: bytearray = field(default_factory=bytearray)

    def send(self, request: bytes) -> None:
        self.received.clear()
        self.sent_s = time.perf_counter()
        self.socket.sendall(request)

    def receive(self) -> bytes | None:
        """The whole answer, or None while a part is missing."""
        data = self.socket.recv(65536)
        if not data:
            raise ConnectionError(f"the server closed the connection after {bytes(self.received)!r}")
        self.received += data
        head, found, body = self.received.partition(b"\r\n\r\n")
        lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        return bytes(self.received) if found and len(body) >= int(lengths[0].split(b":")[1]) else None


def for_seconds(seconds: float, clients: int, make: Callable[[int], bytes]) -> Iterator[bytes]:
    """Requests for so long, one for each client at least."""
    until_s, number = time.perf_counter() + seconds, 0
    while number < clients or time.perf_counter() < until_s:
        yield make(number)
        number += 1


def send(daemons: Sequence[Installation], clients: int, requests: Iterable[bytes], status: int = 201) -> Load:
    """Send these by so many clients, each of which has one of the daemons.

    Raises ConnectionError on any other status.
    """
    addresses = cycle([urlsplit(daemon.base_url) for daemon in daemons])
    waiting, in_flight, latencies_s = iter(requests), 0, list[float]()
    with ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        wall_s, processor_s = time.perf_counter(), time.process_time()
        for first in islice(waiting, clients):
            address = next(addresses)
            opened = stack.enter_context(socket.create_connection((address.hostname or "", address.port or 80)))
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            selector.register(opened, selectors.EVENT_READ, connection := _Connection(opened))
            connection.send(first)
            in_flight += 1
        while in_flight:
            for key, _ in selector.select(timeout=30):
                answer = key.data.receive()
                if answer is None:
                    continue
                if not answer.startswith(b"HTTP/1.1 %d" % status):
                    raise ConnectionError(f"not {status}: {answer[:2000]!r}")
                latencies_s.append(time.perf_counter() - key.data.sent_s)
                if (request := next(waiting, None)) is None:
                    in_flight -= 1
                else:
                    key.data.send(request)
        wall_s, processor_s = time.perf_counter() - wall_s, time.process_time() - processor_s
    return Load(wall_s, latencies_s, processor_s / wall_s)
