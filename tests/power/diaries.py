"""What clients were answered and when, and what must therefore be there after a power cut at a given moment."""

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx

from tests.acceptance.calls import upload, wait_ended

T = TypeVar("T")
Ask = Callable[[httpx.Client], Any]


@dataclass(frozen=True, slots=True)
class Document:
    """A file that a client uploads in one call. Only it contains its name as a word, and its key is its name too."""

    name: str
    bucket: str = "alpha"
    #: The source that it replaces.
    replaces: str = ""

    @property
    def filename(self) -> str:
        return f"{self.name}.md"

    @property
    def data(self) -> bytes:
        return f"# Notes on {self.name}\n\nThe umber quay was built of stone, and {self.name} is its name.\n".encode()

    def send(self, client: httpx.Client) -> str:
        """Upload the file, or replay its upload, and return the source's id."""
        fields = {"replaces": self.replaces} if self.replaces else {}
        answer = upload(client, self.bucket, self.filename, self.data, self.name, **fields)
        return str(answer.raise_for_status().json()["id"])


@dataclass(frozen=True, slots=True)
class Resumed(Document):
    """A file that comes in parts through an upload session."""

    def send(self, client: httpx.Client) -> str:
        path, body = f"/v1/buckets/{self.bucket}/uploads", {"filename": self.filename, "size_bytes": len(self.data)}
        opened = client.post(path, json=body, headers={"Idempotency-Key": self.name}).raise_for_status().json()
        put_rest(client, opened["upload_url"], self.data)
        return str(client.post(f"{path}/{opened['session_id']}/finalize", json={}).raise_for_status().json()["id"])


@dataclass(frozen=True, slots=True)
class Batched(Document):
    """A file of a batch, whose name begins with that of the batch."""

    count: int = 2
    is_pack: bool = False

    @property
    def files(self) -> dict[str, "Batched"]:
        """All files of the batch by name."""
        batch = self.name.partition("x")[0]
        names = [f"{batch}x{number}" for number in range(self.count)]
        return {name: Batched(name, self.bucket, count=self.count, is_pack=self.is_pack) for name in names}

    def send(self, client: httpx.Client) -> str:
        return self.send_all(client)[self.name]

    def send_all(self, client: httpx.Client) -> dict[str, str]:
        """Send the batch, or replay it, and return the sources' ids by name."""
        files = self.files
        items = [
            {"client_file_id": name, "sha256": hashlib.sha256(each.data).hexdigest()} for name, each in files.items()
        ]
        sizes = [
            {"client_file_id": n, "filename": each.filename, "size_bytes": len(each.data)} for n, each in files.items()
        ]
        body = {"pack": self.is_pack, "manifest": {"version": 1, "items": items}, "files": sizes}
        path = f"/v1/buckets/{self.bucket}/batches"
        key = {"Idempotency-Key": self.name.partition("x")[0]}
        opened = client.post(path, json=body, headers=key).raise_for_status().json()
        if "pack" in opened:
            put_rest(client, opened["pack"]["upload_url"], b"".join(each.data for each in files.values()))
        else:
            for item in opened["items"]:
                put_rest(client, item["upload_url"], files[item["client_file_id"]].data)
        ended = client.post(f"{path}/{opened['batch_id']}/finalize").raise_for_status().json()
        return {item["client_file_id"]: item["knowledge_id"] for item in [*ended["finalized"], *ended["replayed"]]}


def put_rest(client: httpx.Client, upload_url: str, data: bytes, end: int | None = None) -> None:
    """Send the bytes that the service lacks, up to `end`."""
    path = urlsplit(upload_url).path
    first, last = count_held(client, upload_url, len(data)), (end or len(data)) - 1
    if first <= last:
        span = {"Content-Range": f"bytes {first}-{last}/{len(data)}"}
        answer = client.put(path, content=data[first : last + 1], headers=span)
        assert answer.status_code in (200, 308), answer.text


def count_held(client: httpx.Client, upload_url: str, size: int) -> int:
    """Return how many bytes of an upload the service says it has."""
    answer = client.put(urlsplit(upload_url).path, headers={"Content-Range": f"bytes */{size}"})
    assert answer.status_code in (200, 308), answer.text
    held = answer.headers.get("Range", "bytes=0-").removeprefix("bytes=0-")
    return size if answer.status_code == 200 else int(held or -1) + 1


@dataclass(slots=True)
class Promised:
    """What the service has acknowledged by a given moment."""

    #: How many requests were answered, and whether all were.
    answers: int = 0
    is_complete: bool = False
    #: The stored sources, by id.
    sources: dict[str, Document] = field(default_factory=dict)
    #: Those of them that a client has seen to be ready.
    ready: set[str] = field(default_factory=set)
    #: Deleted sources.
    gone: dict[str, Document] = field(default_factory=dict)
    #: Sources that may be there or not: their deletion was requested, or a newer one may already replace them.
    unsure: set[str] = field(default_factory=set)
    #: What else must hold, by name; raises AssertionError.
    facts: dict[str, Ask] = field(default_factory=dict)
    #: The requests that were not answered yet, which their clients send again.
    unanswered: list[Ask] = field(default_factory=list)
    #: What the requests were, in order.
    log: list[str] = field(default_factory=list)

    def store(self, source_id: str, document: Document) -> None:
        self.sources[source_id] = document

    def see_ready(self, source_id: str) -> None:
        self.ready.add(source_id)
        if old := self.sources[source_id].replaces:
            self.delete(old)

    def doubt(self, source_id: str, fact: str) -> None:
        """Neither the source nor the fact has to be there any more."""
        self.unsure.add(source_id)
        del self.facts[fact]

    def delete(self, source_id: str) -> None:
        self.unsure.discard(source_id)
        self.ready.discard(source_id)
        self.gone[source_id] = self.sources.pop(source_id)


Effect = Callable[[Promised], object]


def _nothing(*_: object) -> None:
    pass


@dataclass(slots=True)
class _Entry:
    """A request, and its effects on what is promised."""

    what: str
    again: Ask | None
    #: From the moment on at which it is sent.
    begins: Effect
    began_s: float = field(default_factory=time.time)
    ended_s: float = float("inf")
    #: From its answer on.
    ends: Effect = _nothing


class Diary:
    """The requests of one client, in order."""

    def __init__(self) -> None:
        self._entries: list[_Entry] = []

    def ask(
        self,
        what: str,
        request: Callable[[], T],
        ends: Callable[[Promised, T], object] = _nothing,
        *,
        again: Ask | None = None,
        begins: Effect = _nothing,
    ) -> T:
        """Send a request, and note when it was answered.

        `again` is how its client sends it again. `begins` is called with what is promised as soon as the request is
        sent, and `ends` once it is answered.
        """
        entry = _Entry(what, again, begins)
        self._entries.append(entry)
        answer = request()
        entry.ended_s = time.time()
        entry.ends = lambda promised: ends(promised, answer)
        return answer

    def repeat(
        self, what: str, request: Ask, client: httpx.Client, ends: Callable[[Promised, Any], object] = _nothing
    ) -> Any:
        """Send a request that its client can just send again."""
        return self.ask(what, lambda: request(client), ends, again=request)

    def list_answers(self) -> list[float]:
        """Return when each answer arrived."""
        return [entry.ended_s for entry in self._entries]

    def read(self, before_s: float) -> Promised:
        """Return what was promised by then."""
        promised = Promised(is_complete=all(entry.ended_s <= before_s for entry in self._entries))
        for entry in self._entries:
            if entry.began_s > before_s:
                break
            entry.begins(promised)
            if entry.ended_s <= before_s:
                promised.answers += 1
                promised.log.append(entry.what)
                entry.ends(promised)
                continue
            promised.log.append(f"{entry.what} (not answered yet)")
            promised.unanswered += [entry.again] if entry.again else []
        return promised

    # The requests of most scenes.

    def upload(self, client: httpx.Client, document: Document) -> str:
        return self.ask(
            f"upload {document.name}",
            lambda: document.send(client),
            lambda promised, source_id: promised.store(source_id, document),
            again=document.send,
            begins=lambda promised: promised.unsure.update({document.replaces} - {""}),
        )

    def wait_ready(self, client: httpx.Client, *source_ids: str) -> None:
        for source_id in source_ids:
            source = self.ask(
                f"wait for {source_id}",
                lambda source_id=source_id: wait_ended(client, source_id),  # type: ignore[misc]
                lambda promised, source: promised.see_ready(source["id"]),
            )
            assert source["ready"], source

    def delete(self, client: httpx.Client, source_id: str) -> None:
        path = f"/v1/sources/{source_id}"
        self.ask(
            f"delete {source_id}",
            lambda: client.delete(path).raise_for_status(),
            lambda promised, _: promised.delete(source_id),
            again=lambda client: client.delete(path),
            begins=lambda promised: promised.unsure.add(source_id),
        )
