"""Clients that run all kinds of operations concurrently against a daemon that is killed meanwhile.

Each client only changes sources that it has created, so it knows their expected state. It repeats each request without
a response, with the same idempotency key; each response is a promise, which the client records in `Made`.
"""

import hashlib
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar
from urllib.parse import urlsplit

import httpx

from tests.acceptance.installations import Installation, wait_until
from tests.fetch.servers import Exchange, Server, serving

BUCKETS = ("alpha", "beta")
#: The timeout of an operation, enough for a few kills and restarts of the daemon.
OPERATION_TIMEOUT_S = 180.0
#: Statuses that this installation's daemon never returns: another daemon has taken its port.
_STATUSES_OF_OTHER_DAEMONS = (401, 421)


@dataclass(slots=True)
class Made:
    """The state of a source that the service has acknowledged to its client."""

    id: str
    #: A word that only this document contains; a changed document has another one.
    word: str
    #: Slugs of the buckets that contain the source.
    buckets: set[str]
    #: None if the daemon has fetched the bytes itself.
    sha256: str | None = None
    title: str | None = None
    #: `file`, `page` or `qa`.
    type: str = "file"
    is_readable: bool = True
    is_deleted: bool = False
    #: Whether it replaces another source once it is ready; if it were deleted before, the other source would stay.
    is_successor: bool = False
    #: The path of its URL.
    path: str | None = None


@dataclass(slots=True)
class Site:
    """A web site that has a document at any path, and receives webhook calls at `/hook`."""

    server: Server = field(init=False)
    #: How often the document at each path has been changed.
    changes: dict[str, int] = field(default_factory=dict)

    def word(self, path: str) -> str:
        return f"{path.rpartition('/')[2].partition('.')[0]}v{self.changes.get(path, 0)}"

    def answer(self, exchange: Exchange) -> None:
        path = exchange.request.path
        if path == "/hook":
            exchange.answer(204)
        elif path.endswith(".md"):
            exchange.answer(200, document(self.word(path)), content_type="text/markdown")
        else:
            body = f"<html><body><article>{document(self.word(path)).decode()}</article></body></html>"
            exchange.answer(200, body.encode(), content_type="text/html")


@contextmanager
def hosting() -> Iterator[Site]:
    site = Site()
    with serving(site.answer) as site.server:
        yield site


def document(word: str, length: int = 1) -> bytes:
    """Return a Markdown document of `length` chapters with the word in the first."""
    more = "".join(f"\n## Chapter {number}\n\n{'The tide came in at noon. ' * 40}\n" for number in range(1, length))
    return f"# Notes on {word}\n\nThe umber quay was built of stone, and {word} is its name.\n{more}".encode()


@dataclass(eq=False, repr=False)
class Client(threading.Thread):
    """Runs `operations` of all kinds, in a random order that its number seeds."""

    installation: Installation
    site: Site
    number: int
    operations: int
    made: list[Made] = field(default_factory=list)
    cascades: list[str] = field(default_factory=list)
    #: How to repeat the request of each idempotency key, and the source id that it returned.
    answered: dict[str, tuple[Callable[[str], Any], str]] = field(default_factory=dict)
    done: Counter[str] = field(default_factory=Counter)
    failure: BaseException | None = None
    #: Long enough for a kill to hit uploads that are being received.
    chapters: ClassVar[int] = 12
    patience_s: ClassVar[float] = OPERATION_TIMEOUT_S
    #: The pause between attempts.
    pause_s: ClassVar[float] = 0.02
    #: Set to stop the client before it has done all of its operations.
    is_stopped: bool = False
    _words: int = 0
    _http: httpx.Client | None = None

    def __post_init__(self) -> None:
        super().__init__(name=f"client-{self.number}")
        self._random = random.Random(self.number)

    def run(self) -> None:
        kinds = [self.upload, self.upload, self.session, self.batch, self.import_file, self.add_page, self.ask]
        kinds += [self.patch, self.attach, self.detach, self.delete, self.replace, self.refresh, self.retry]
        kinds += [self.empty_bucket]
        try:
            for _ in range(self.operations):
                if self.is_stopped:
                    break
                kind = self._random.choice(kinds)
                kind()
                self.done[kind.__name__] += 1
        except (AssertionError, LookupError, TypeError, ValueError, httpx.HTTPError) as failure:
            self.failure = failure
        finally:
            self.close()

    # Operations.

    def upload(self) -> None:
        self._upload(self._bucket())

    def session(self) -> None:
        word, bucket = self._new_word(), self._bucket()
        data = document(word)
        body = {"filename": f"{word}.md", "size_bytes": len(data)}
        path = f"/v1/buckets/{bucket}/uploads"
        opened = self.call("POST", path, (200, 201), json=body, headers={"Idempotency-Key": word})
        self._send(opened["upload_url"], data)
        made = self.call("POST", f"{path}/{opened['session_id']}/finalize", (200, 201))
        self._keep(Made(made["id"], word, {bucket}, _sha256(data)))

    def batch(self) -> None:
        words, bucket = [self._new_word() for _ in range(3)], self._bucket()
        files = [{"client_file_id": w, "filename": f"{w}.md", "size_bytes": len(document(w))} for w in words]
        items = [{"client_file_id": word, "sha256": _sha256(document(word))} for word in words]
        body = {"manifest": {"version": 1, "items": items}, "files": files, "pack": self._random.random() < 0.5}
        path = f"/v1/buckets/{bucket}/batches"
        opened = self.call("POST", path, (200, 201), json=body, headers={"Idempotency-Key": words[0]})
        if "pack" in opened:
            self._send(opened["pack"]["upload_url"], b"".join(map(document, words)))
        else:
            for item in opened["items"]:
                self._send(item["upload_url"], document(item["client_file_id"]))
        ended = self.call("POST", f"{path}/{opened['batch_id']}/finalize", (200,))
        for item in ended["finalized"] + ended["replayed"]:
            word = item["client_file_id"]
            self._keep(Made(item["knowledge_id"], word, {bucket}, _sha256(document(word))))
        assert (ended["pending"], ended["failed"]) == ([], [])

    def import_file(self) -> None:
        self._take_in("files/import", "md", "file")

    def add_page(self) -> None:
        self._take_in("pages", "html", "page")

    def ask(self) -> None:
        word, bucket = self._new_word(), self._bucket()
        body = {"question": f"What is {word}?", "answer": f"{word} is a quay."}
        self._keep(Made(self._create(f"/v1/buckets/{bucket}/qa", word, json=body), word, {bucket}, type="qa"))

    def patch(self) -> None:
        if made := self._any(lambda made: made.type != "qa"):
            made.title = self._new_word()
            self.call("PATCH", f"/v1/sources/{made.id}", (200,), json={"title": made.title})

    def attach(self) -> None:
        if made := self._any(lambda made: len(made.buckets) == 1):
            (bucket,) = set(BUCKETS) - made.buckets
            self.call("POST", f"/v1/buckets/{bucket}/sources", (200,), json={"source_id": made.id})
            made.buckets.add(bucket)

    def detach(self) -> None:
        if made := self._any(lambda made: len(made.buckets) == 2 and not made.is_successor):
            bucket = self._random.choice(sorted(made.buckets))
            self.call("DELETE", f"/v1/buckets/{bucket}/sources/{made.id}", (200, 404))
            made.buckets.remove(bucket)

    def delete(self) -> None:
        if made := self._any(lambda made: not made.is_successor):
            self.call("DELETE", f"/v1/sources/{made.id}", (200, 404))
            made.is_deleted = True
            assert made.id not in self.found(made.word)

    def replace(self) -> None:
        if old := self._any(lambda made: made.type == "file" and made.is_readable and len(made.buckets) == 1):
            self._upload(next(iter(old.buckets)), replaces=old.id).is_successor = True
            old.is_deleted = True

    def refresh(self) -> None:
        """Change the document at a source's URL and refresh the source, which is refused while it is being indexed."""
        made = self._any(lambda made: made.path is not None)
        if made is None or made.path is None:
            return
        stored = self._stored(made)
        self.site.changes[made.path] = self.site.changes.get(made.path, 0) + 1
        self.call("POST", f"/v1/sources/{made.id}/refresh", (200, 202, 409))
        if self._stored(made) == stored:
            self.site.changes[made.path] -= 1
        made.word = self.site.word(made.path)

    def retry(self) -> None:
        """Retry an unreadable source, or upload one if there is none."""
        if made := self._any(lambda made: not made.is_readable):
            self.call("POST", f"/v1/sources/{made.id}/retry", (200, 400))
        else:
            self._upload(self._bucket(), data=b"%PDF-1.4\nnothing")

    def empty_bucket(self) -> None:
        """Delete a bucket that has a source of its own and one that is in another bucket too."""
        bucket, kept_in = self._new_word(), self._bucket()
        self.call("PUT", f"/v1/buckets/{bucket}", (200, 201))
        alone, shared = self._upload(bucket), self._upload(kept_in)
        self.call("POST", f"/v1/buckets/{bucket}/sources", (200,), json={"source_id": shared.id})
        deleted = self.call("DELETE", f"/v1/buckets/{bucket}?force=true", (200, 404, 409))
        alone.is_deleted = True
        # The upload can't be replayed, because its bucket is gone.
        del self.answered[alone.word]
        if "deletion" in deleted:
            self.cascades.append(deleted["deletion"]["task_id"])
        assert alone.id not in self.found(alone.word)

    # Helpers.

    def call(self, method: str, path: str, wanted: tuple[int, ...], **options: Any) -> Any:
        """Send a request until the daemon responds with one of the wanted statuses, and return the response."""
        what = f"an answer to {method} {path}"
        return wait_until(lambda: self._attempt(method, path, wanted, **options), what, self.patience_s, self.pause_s)

    def found(self, word: str) -> set[str]:
        """Return the ids of the sources that a search of all buckets finds."""
        answer = self.call("POST", "/v1/search", (200, 409), json={"query": word, "max_num_results": 50})
        return {result["source_id"] for result in answer.get("data", [])}

    def _attempt(self, method: str, path: str, wanted: tuple[int, ...], **options: Any) -> dict[str, Any] | None:
        """Send a request once; return None if it has to be retried: the daemon is down, stopping, starting or busy."""
        try:
            answer = self._client().request(method, path, **options)
        except (httpx.TransportError, KeyError, FileNotFoundError):
            self.close()
            return None
        if answer.status_code in wanted:
            return dict(answer.json())
        if answer.status_code in _STATUSES_OF_OTHER_DAEMONS or answer.json()["error"]["retryable"]:
            return None
        raise AssertionError(f"{method} {path}: {answer.status_code} {answer.text}")

    def _client(self) -> httpx.Client:
        """Return a client for the daemon's current port, which changes with each restart."""
        if self._http is None or str(self._http.base_url).rstrip("/") != self.installation.base_url:
            self.close()
            self._http = self.installation.client()
        return self._http

    def close(self) -> None:
        """Close the client's connections; the next call opens a new one."""
        if self._http is not None:
            self._http.close()
            self._http = None

    def _create(self, path: str, key: str, **options: Any) -> str:
        """Create a source with this idempotency key and return its id; record both for the later replay."""

        def send(key: str) -> Any:
            return self.call("POST", path, (200, 201), headers={"Idempotency-Key": key}, **options)

        source_id = str(send(key)["id"])
        self.answered[key] = (send, source_id)
        return source_id

    def _stored(self, made: Made) -> str:
        return str(self.call("GET", f"/v1/sources/{made.id}", (200,))["sha256"])

    def _upload(self, bucket: str, data: bytes | None = None, **fields: str) -> Made:
        word = self._new_word()
        filename, content = (f"{word}.pdf", data) if data else (f"{word}.md", document(word, self.chapters))
        files = {"file": (filename, content)}
        source_id = self._create(f"/v1/buckets/{bucket}/files", word, files=files, data=fields)
        return self._keep(Made(source_id, word, {bucket}, _sha256(content), is_readable=data is None))

    def _take_in(self, door: str, extension: str, kind: str) -> None:
        word, bucket = self._new_word(), self._bucket()
        path = f"/{word}.{extension}"
        hook = {"url": self.site.server.url("/hook"), "metadata": {"word": word}}
        body = {"url": self.site.server.url(path), "webhook": hook}
        source_id = self._create(f"/v1/buckets/{bucket}/{door}", word, json=body)
        self._keep(Made(source_id, self.site.word(path), {bucket}, type=kind, path=path))

    def _send(self, upload_url: str, data: bytes) -> None:
        """Send all bytes that are not stored yet, resuming after failures."""
        path = urlsplit(upload_url).path
        wait_until(lambda: self._send_rest(path, data), f"the bytes of {path}", self.patience_s, self.pause_s)

    def _send_rest(self, path: str, data: bytes) -> bool:
        try:
            asked = self._client().put(path, headers={"Content-Range": f"bytes */{len(data)}"})
            if asked.status_code != 308:
                return asked.status_code == 200
            stored = asked.headers.get("Range")
            first = int(stored.removeprefix("bytes=0-")) + 1 if stored else 0
            last = min(first + len(data) // 2, len(data) - 1)
            headers = {"Content-Range": f"bytes {first}-{last}/{len(data)}"}
            return self._client().put(path, content=data[first : last + 1], headers=headers).status_code == 200
        except (httpx.TransportError, KeyError, FileNotFoundError):
            self.close()
            return False

    def _keep(self, made: Made) -> Made:
        self.made.append(made)
        return made

    def _any(self, condition: Callable[[Made], bool]) -> Made | None:
        """Return a random source of this client that is not deleted and meets the condition, if there is one."""
        fitting = [made for made in self.made if not made.is_deleted and condition(made)]
        return self._random.choice(fitting) if fitting else None

    def _bucket(self) -> str:
        return self._random.choice(BUCKETS)

    def _new_word(self) -> str:
        """Return a word that no other document contains."""
        self._words += 1
        return f"word{self.number}x{self._words}"


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def have_done(clients: Sequence[Client], operations: int) -> bool:
    """Whether the clients have done this many operations, or all of them have ended."""
    done = sum(sum(list(client.done.values())) for client in clients)
    return done >= operations or not any(client.is_alive() for client in clients)
