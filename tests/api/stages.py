"""A stage for calls of every route: a working daemon, a web site, a receiver, and things that were just made on it.

What one call spoils must not disturb the next one, so each thing that is asked for is new.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import httpx

from svc_daemon.api.middleware.error_responses import is_openai_path
from svc_daemon.core.access import api_keys
from svc_daemon.extract.extractors import Extractor
from svc_daemon.process.rate_limits import LocalRateLimits
from tests.api.answers import body_of
from tests.api.daemons import NOTES, UNLIMITED, Daemon
from tests.api.loops import Loop
from tests.api.sessions import open_batch, open_pack, open_session, path_of, put
from tests.api.sites import PAGE, Receiver, Site, hosting, receiving

FINALIZE = "/v1/buckets/{bucket}/uploads/{session_id}/finalize"


@dataclass(frozen=True, slots=True)
class Call:
    """A request of a route, in parts that a test can change."""

    method: str
    #: As in the table of routes.
    path: str
    #: The values of the path's parameters.
    places: dict[str, str] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def target(self) -> str:
        return self.path.format(**self.places)

    def at(self, **places: str) -> "Call":
        return replace(self, places=self.places | places)

    def but(self, **options: Any) -> "Call":
        """With these options in place of those of the same names."""
        return replace(self, options=self.options | options)

    def sending(self, **fields: Any) -> "Call":
        """With these fields besides: in the form where there is a file, else in the JSON body."""
        name = "data" if "files" in self.options else "json"
        return self.but(**{name: self.options.get(name, {}) | fields})

    def asking(self, **query: str | list[str]) -> "Call":
        return self.but(params=self.options.get("params", {}) | query)

    def naming(self, **headers: str) -> "Call":
        """With these headers besides; `_` stands for `-`."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.but(headers=self.options.get("headers", {}) | named)

    def bare(self, content: bytes, content_type: str) -> "Call":
        """With this body in place of its own."""
        options = {name: value for name, value in self.options.items() if name not in ("json", "files", "data")}
        return replace(self, options=options).but(content=content).naming(Content_Type=content_type)

    def into(self, bucket: str) -> "Call":
        """The call of a legacy route with this bucket in its body; an empty one names none."""
        manifest = self.options["json"].get("manifest")
        return self.sending(manifest=manifest | {"bucket": bucket}) if manifest else self.sending(bucket=bucket)

    def using(self, model: str) -> "Call":
        """About this model, wherever the call names one."""
        if "model" in self.places:
            return self.at(model=model)
        if "agent_id" in self.places:
            return self.at(agent_id=model.partition(":")[2] or "default")
        if self.path == "/v1/agents":
            return self
        if self.method == "GET":
            return self.asking(agent=model)
        if self.path == "/v1/keys":
            return self.sending(models=[model])
        return self.sending(model=model) if is_openai_path(self.path) else self.sending(agent=model)

    def is_to(self, *ends: str) -> bool:
        return self.path.endswith(ends)


class Stage:
    """Makes what calls are about."""

    def __init__(self, daemon: Daemon, site: Site, receiver: Receiver) -> None:
        self.daemon = daemon
        self.site = site
        self.receiver = receiver
        self._numbers = count(1)

    def send(self, call: Call) -> httpx.Response:
        return self.daemon.ask(call.method, call.target, **call.options)

    def name(self, kind: str = "thing") -> str:
        """One that nothing has yet."""
        return f"{kind}-{next(self._numbers)}"

    def bucket(self) -> str:
        slug = self.name("bucket")
        self.daemon.make_bucket(slug)
        return slug

    def ready(self, bucket: str | None = None) -> tuple[str, str]:
        """A bucket and a ready source in it."""
        bucket = bucket or self.bucket()
        return bucket, self.daemon.add_ready(NOTES, bucket=bucket)

    def failed(self) -> str:
        """A source without text."""
        source_id = self.daemon.add_source(b" \n", bucket=self.bucket(), filename="blank.txt")
        self.daemon.wait_status(source_id, "failed")
        return source_id

    def file_url(self) -> str:
        return self.site.put(f"/{self.name('file')}.md", NOTES, "text/markdown")

    def page_url(self) -> str:
        return self.site.put(f"/{self.name('page')}", PAGE)

    def fetched(self, url: str, door: str = "files/import", **fields: Any) -> str:
        """A ready source from the URL."""
        source_id = self.daemon.post(f"/v1/buckets/{self.bucket()}/{door}", 201, json={"url": url, **fields})["id"]
        self.daemon.wait_ready(source_id)
        return str(source_id)

    def change_at_its_url(self, source_id: str) -> None:
        """Have the site serve more at the URL of this source."""
        path = self.daemon.source(source_id)["source_url"].rpartition("/")[2]
        self.site.put(f"/{path}", NOTES + b"And more.\n", "text/markdown")

    def queued_from_url(self) -> str:
        """A source from a URL that no worker has taken up; none may run."""
        path, body = f"/v1/buckets/{self.bucket()}/files/import", {"url": self.file_url()}
        return str(self.daemon.post(path, 201, json=body)["id"])

    def session(
        self, data: bytes = NOTES, bucket: str | None = None, **fields: Any
    ) -> tuple[dict[str, str], dict[str, Any]]:
        """The places of a new session, and the answer to its create."""
        bucket = bucket or self.bucket()
        session = open_session(self.daemon, data, bucket=bucket, **fields)
        token = path_of(session).rpartition("/")[2]
        return {"bucket": bucket, "session_id": session["session_id"], "token": token}, session

    def uploaded(self, **fields: Any) -> dict[str, str]:
        """The places of a session whose bytes have arrived."""
        places, session = self.session(**fields)
        body_of(put(self.daemon, session, NOTES))
        return places

    def finalized(self) -> dict[str, str]:
        places = self.uploaded()
        self.daemon.post(FINALIZE.format(**places), 201)
        return places

    def batch(self, *, arrived: bool = True) -> dict[str, str]:
        """The places of a batch with one file."""
        bucket = self.bucket()
        batch = open_batch(self.daemon, [("a", NOTES)], bucket=bucket)
        if arrived:
            body_of(put(self.daemon, batch["by_id"]["a"], NOTES))
        return {"bucket": bucket, "batch_id": batch["batch_id"], "session_id": batch["items"][0]["session_id"]}

    def pack(self, files: Sequence[tuple[str, bytes]]) -> dict[str, str]:
        """The places of the pack's storage URL of a new batch."""
        batch = open_pack(self.daemon, files, bucket=self.bucket())
        return {"session_id": batch["batch_id"], "token": path_of(batch).rpartition("/")[2]}

    def agent(self, **fields: Any) -> str:
        """The id of a new agent."""
        return str(self.daemon.post("/v1/agents", 201, json={"agent_id": self.name("agent"), **fields})["id"])

    def made_key(self) -> str:
        """The id of an API key that nobody uses."""
        return _id_of(self.daemon.add_key())

    def key_for(self, model: str) -> str:
        """A key that is kept to this model."""
        return self.daemon.add_key(models=(model,))

    def delivery(self) -> str:
        """The id of a call of a webhook that arrived."""
        source_id = self.fetched(self.file_url(), webhook={"url": self.receiver.url})
        query = {"source_id": source_id, "status": "delivered"}
        deliveries = partial(self.daemon.show, "/v1/webhooks/deliveries", **query)
        self.daemon.wait(lambda: bool(deliveries()["deliveries"]), "the webhook is called")
        return str(deliveries()["deliveries"][0]["id"])

    @property
    def key_id(self) -> str:
        return _id_of(self.daemon.key)

    @contextmanager
    def limited(self, **limits: int) -> Iterator[LocalRateLimits]:
        """The daemon with these limits in place of its own, and with fresh counts, while the block runs."""
        daemon = self.daemon
        tight = replace(daemon.limits, **limits)
        rate_limits = LocalRateLimits(tight, daemon.context.clock.monotonic)
        with daemon.serving_with(limits=tight, rate_limits=rate_limits):
            yield rate_limits

    @contextmanager
    def resting(self) -> Iterator[None]:
        """No worker runs within the block."""
        self.daemon.stop()
        try:
            yield
        finally:
            self.daemon.start()


def _id_of(key: str) -> str:
    parts = api_keys.parse(key)
    assert parts is not None
    return parts.key_id


@contextmanager
def staging(loop: Loop, extractor: Extractor, folder: Path) -> Iterator[Stage]:
    """A stage whose daemon works, while the block runs. It takes as many agents as a long run makes."""
    limits = replace(UNLIMITED, agents=0)
    with (
        closing(Daemon(loop, folder / "data", extractor, limits)) as daemon,
        hosting() as site,
        receiving() as receiver,
    ):
        daemon.start()
        yield Stage(daemon, site, receiver)
