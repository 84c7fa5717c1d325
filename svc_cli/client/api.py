"""The client class: one method per API route, each returning the API's JSON object."""

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from http.client import HTTPConnection
from io import StringIO
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack, overload

from svc_cli.client.agents import AgentCalls, AnswerCalls
from svc_cli.client.batches import BatchCalls
from svc_cli.client.calls import ListingCalls, part
from svc_cli.client.connection_pools import Proof
from svc_cli.client.events import EventCalls
from svc_cli.client.imports import ImportCalls
from svc_cli.client.retries import RetryPolicy
from svc_cli.client.sessions import SessionCalls, Storage
from svc_cli.client.source_lookups import find_source
from svc_cli.client.transport import Reply, Request, Transport
from svc_cli.client.waiting import wait_and_look_up
from svc_cli.client.webhooks import WebhookCalls
from svc_cli.console import Console
from svc_cli.credentials import ServiceAddress
from svc_cli.daemon.probes import tls_context
from svc_cli.deadlines import Deadline
from svc_cli.errors import NotReady
from svc_cli.interrupts import shielded
from svc_cli.settings import CliSettings

if TYPE_CHECKING:
    from svc_cli.client.types import (
        BucketAnswerDict,
        BucketDeletedDict,
        BucketFieldsDict,
        BucketListDict,
        BucketPutAnswerDict,
        BucketUpdateDict,
        BucketVectorsDict,
        ConsoleSessionDict,
        DeletedDict,
        DetachedDict,
        DryRunDict,
        KeyAnswerDict,
        KeyCreatedDict,
        KeyFieldsDict,
        KeyListDict,
        LimitsAnswerDict,
        OfferedVectorDict,
        OffersKeptDict,
        QaCreateDict,
        SearchOptions,
        SearchPageDict,
        SettledSource,
        SourceAnswerDict,
        SourceTextDict,
        SourceUpdateDict,
        SourceVectorsDict,
        SourceVerifiedDict,
        TaskAnswerDict,
        VersionDict,
    )

#: Query parameters for buckets, with or without the ids of their sources.
_MEMBERS: Mapping[bool, dict[str, str]] = {True: {}, False: {"members": "false"}}


class Client(ListingCalls, SessionCalls, BatchCalls, EventCalls, ImportCalls, WebhookCalls, AgentCalls, AnswerCalls):
    """A client of one service with one API key.

    **Connections** are kept for the next request, until `close` or the end of a `with` block.

    **Answers** are the API's JSON objects, as dicts; their types are in `svc_cli.client.types`. An older service may
    lack newer fields: reading one raises BadAnswer, and `.get` returns None.

    **Errors** are subclasses of SvcError:

    * ApiError: the service refused the request; has `code`, `status`, `details` and `request_id`
    * NetworkFailed: the connection broke, and retries did not help
    * BadAnswer: the response is not one of this API
    * UsageError: a name can't be part of a URL
    * NotReady: a source that you wait for has failed
    * WaitTimedOut: a wait has taken too long

    **Retries**: requests are repeated after temporary errors, as often as `policy` allows. This creates nothing twice,
    because each create request has an idempotency key. If you pass your own idempotency keys, running your program
    again creates nothing twice either. After status 429, create requests wait as long as the service asks.

    **Threads** may share a client. If the service asks one thread to pause, all threads pause before they create
    anything. `stop` makes all threads stop waiting and sending.
    """

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        autostart: bool = False,
        policy: RetryPolicy | None = None,
        service: str = "",
        certificate: str | None = None,
        proof: Proof | None = None,
        connection: HTTPConnection | None = None,
    ) -> None:
        """Without `base_url` and `api_key`, find the service and the key as `svc` does.

        The address is `SVC_BASE_URL` or that of the settings, or else that of the local daemon, which is started with
        `autostart` if it isn't running. The key is `SVC_API_KEY`, the content of `SVC_API_KEY_FILE`, the one that `svc
        auth login` has stored, or that of the local daemon. Raises NotAuthenticated if there is no key for this
        service, and DaemonUnreachable if there is no address and no daemon that proves to be the local one.

        With `certificate` (in PEM form), an https server must have exactly this certificate. `proof` is called with
        each new connection before anything else is sent, and raises an error if the wrong service is at its other end.
        `connection` is an open one, on which this was done already.
        `service` is the name under which the command line keeps state about the service; other programs leave it out.
        """
        given_url = base_url or (os.environ.get("SVC_BASE_URL") if certificate else None)
        address = ServiceAddress(given_url or "", None, certificate, proof)
        if not address.base_url:
            from svc_cli.daemon.services import reach

            silent = Console(StringIO(), StringIO(), os.environ, is_quiet=True)
            address = reach(CliSettings.load(os.environ, Path.cwd()), silent, autostart=autostart)[0]
        self.base_url = address.base_url.rstrip("/")
        #: Identifies the service in files that the command line keeps, because the URL of a local daemon may change.
        self.service = service or self.base_url
        key, make_tls = api_key or _find_key(address), partial(tls_context, address.certificate)
        transport = Transport(self.base_url, key, policy=policy, make_tls=make_tls, proof=address.proof)
        if connection is not None:
            transport.use(connection)
        super().__init__(transport, Storage(policy, make_tls=make_tls, proof=address.proof))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()
        self._storage.close()

    @property
    def deadline(self) -> Deadline:
        """The time in which all requests and waits of this client have to end; setting it limits those to come.

        At its end, nothing new is sent, and calls raise WaitTimedOut.
        """
        return self._transport.deadline

    @deadline.setter
    def deadline(self, deadline: Deadline) -> None:
        self._transport.deadline = self._storage.deadline = deadline

    @shielded()
    def stop(self) -> None:
        """Raise `pacing.Stopped` in all threads that send bytes or wait for the rate limit."""
        self._transport.pacer.stop()
        self._storage.stop()

    def pace_creates(self, per_second: float) -> None:
        """Limit the rate of create requests over all threads. The service's limit is in `limits()`."""
        self._transport.pacer.pace(per_second)

    @property
    def waiting_creates(self) -> int:
        """Return how many create requests are waiting because of the rate limit."""
        return self._transport.pacer.waiting

    def send(self, request: Request) -> Reply[Any]:
        """Send any request to the API, with key and retries."""
        return self._transport.send(request)

    # Buckets

    def buckets(self, *, include_archived: bool = False, members: bool = True) -> "BucketListDict":
        """Return the buckets that the key may access. With `members`, `knowledgeIds` has the ids of their sources."""
        archived = {"include_archived": "true"} if include_archived else {}
        return self._get("/v1/buckets", archived | _MEMBERS[members])

    def bucket(self, bucket: str, *, members: bool = True) -> "BucketAnswerDict":
        """Return one bucket, by id or slug. With `members`, `knowledgeIds` has the ids of its sources."""
        return self._get(f"/v1/buckets/{part(bucket)}", _MEMBERS[members])

    @overload
    def ensure_bucket(
        self, slug: str, *, dry_run: Literal[False] = False, **fields: "Unpack[BucketFieldsDict]"
    ) -> "BucketPutAnswerDict": ...

    @overload
    def ensure_bucket(
        self, slug: str, *, dry_run: bool, **fields: "Unpack[BucketFieldsDict]"
    ) -> "BucketPutAnswerDict | DryRunDict": ...

    def ensure_bucket(
        self, slug: str, *, dry_run: bool = False, **fields: "Unpack[BucketFieldsDict]"
    ) -> "BucketPutAnswerDict | DryRunDict":
        """Return the bucket. If it doesn't exist, it is created with these `fields`, and `created` is true."""
        params = {"dry_run": "true"} if dry_run else None
        return self._call("PUT", f"/v1/buckets/{part(slug)}", params=params, json=fields)

    def update_bucket(self, bucket: str, **changes: "Unpack[BucketUpdateDict]") -> "BucketAnswerDict":
        """Change a bucket's name, description, metadata or status (`active` or `archived`)."""
        return self._call("PATCH", f"/v1/buckets/{part(bucket)}", json=changes)

    def delete_bucket(self, bucket: str, *, force: bool = False) -> "BucketDeletedDict":
        """Start deleting a bucket, with the sources that are in no other bucket. Requires `force`."""
        return self._call("DELETE", f"/v1/buckets/{part(bucket)}", params={"force": "true"} if force else None)

    def bucket_vectors(self, bucket: str) -> "BucketVectorsDict":
        """Return how many passages of a bucket have vectors."""
        return self._get(f"/v1/buckets/{part(bucket)}/vectors")

    def offer_vectors(self, bucket: str, model: str, vectors: "list[OfferedVectorDict]") -> "OffersKeptDict":
        """Send vectors that `model` computed, for files that will be added to a bucket.

        The service checks the vectors, and computes those that are missing or wrong.
        """
        return self._call("POST", f"/v1/buckets/{part(bucket)}/vectors", json={"model": model, "vectors": vectors})

    # Sources

    def source(self, source: str, *, bucket: str | None = None, verify: bool = False) -> "SourceVerifiedDict":
        """Return one source; with `verify`, also its state in the search index.

        With `bucket`, it is named as on the command line: by its id, the beginning of its id, its title or its file
        name. Raises SourceAmbiguous if several match.
        """
        source_id = source if bucket is None else find_source(self, source, bucket)
        return self._get(f"/v1/sources/{part(source_id)}", {"verify": "provider"} if verify else None)

    def source_text(self, source_id: str, *, hidden: bool = False) -> "SourceTextDict":
        """Return the extracted text of a source, and its chunks with their positions.

        With `hidden`, also what no reader of the document sees.
        """
        return self._get(f"/v1/sources/{part(source_id)}/text", {"hidden": "true"} if hidden else None)

    def source_vectors(self, source_id: str) -> "SourceVectorsDict":
        """Return the extracted text of a source, and its chunks with their positions and vectors."""
        return self._get(f"/v1/sources/{part(source_id)}/text", {"vectors": "true"})

    def source_content(self, source_id: str) -> Iterator[bytes]:
        """Yield the stored bytes of a source in blocks."""
        return self._transport.blocks(Request(method="GET", path=f"/v1/sources/{part(source_id)}/content"))

    def update_source(self, source_id: str, **changes: "Unpack[SourceUpdateDict]") -> "SourceAnswerDict":
        """Change a source's title, filename, tags or metadata, or how often it is fetched again."""
        return self._call("PATCH", f"/v1/sources/{part(source_id)}", json=changes)

    def retry_source(self, source_id: str) -> "SourceAnswerDict":
        """Queue a failed source for indexing again."""
        return self._call("POST", f"/v1/sources/{part(source_id)}/retry", json={})

    def delete_source(self, source_id: str, *, force: bool = False) -> "DeletedDict":
        """Delete a source from all its buckets. `force` is required if the settings of an agent name the source."""
        return self._call("DELETE", f"/v1/sources/{part(source_id)}", params={"force": "true"} if force else None)

    def add_question(
        self,
        bucket: str,
        question: str,
        answer: str,
        *,
        idempotency_key: str | None = None,
        **fields: "Unpack[QaCreateDict]",
    ) -> "Reply[SourceAnswerDict]":
        """Store a question with its answer as a source.

        An agent finds the source if it searches all sources, or if its settings name the source. Searches of a bucket
        don't find it.
        """
        body = {"question": question, "answer": answer, **fields}
        return self._create(f"/v1/buckets/{part(bucket)}/qa", body, idempotency_key)

    def attach_source(self, bucket: str, source_id: str) -> "SourceAnswerDict":
        """Add an existing source to another bucket."""
        return self._call("POST", f"/v1/buckets/{part(bucket)}/sources", json={"source_id": source_id})

    def detach_source(self, bucket: str, source_id: str) -> "DetachedDict":
        """Remove a source from one bucket. The source still exists, and stays in its other buckets."""
        return self._call("DELETE", f"/v1/buckets/{part(bucket)}/sources/{part(source_id)}")

    def wait_until_ready(
        self, source_ids: str | Iterable[str], timeout_s: float | None = None
    ) -> "dict[str, SettledSource]":
        """Wait until all the sources are searchable, and return their states by id.

        Raises NotReady at the end if a source has failed or was deleted, and WaitTimedOut after `timeout_s`.
        """
        states = wait_and_look_up(self, [source_ids] if isinstance(source_ids, str) else source_ids, timeout_s)
        unready = {source_id: state for source_id, state in states.items() if not state["ready"]}
        if unready:
            source_id, state = next(iter(unready.items()))
            reason = (state.get("error") or {}).get("message", f"it is {state['status']}")
            raise NotReady(
                f"{len(unready)} of {len(states)} sources can't become ready; {source_id}: {reason}",
                details={"sources": unready},
            )
        return states

    # Search and tasks

    def search(self, query: str, **options: "Unpack[SearchOptions]") -> "SearchPageDict":
        """Return the best passages for a query, best first."""
        return self._call("POST", "/v1/search", json={"query": query, **options})

    def task(self, task_id: str) -> "TaskAnswerDict":
        """Return one task with its current state."""
        return self._get(f"/v1/knowledge/tasks/{part(task_id)}")

    # Keys

    def keys(self) -> "KeyListDict":
        """Return the key in use, and all keys whose rights don't exceed its own."""
        return self._get("/v1/keys")

    @overload
    def create_key(
        self, *, idempotency_key: str | None = None, dry_run: Literal[False] = False, **fields: "Unpack[KeyFieldsDict]"
    ) -> "KeyCreatedDict": ...

    @overload
    def create_key(
        self, *, idempotency_key: str | None = None, dry_run: bool, **fields: "Unpack[KeyFieldsDict]"
    ) -> "KeyCreatedDict | DryRunDict": ...

    def create_key(
        self, *, idempotency_key: str | None = None, dry_run: bool = False, **fields: "Unpack[KeyFieldsDict]"
    ) -> "KeyCreatedDict | DryRunDict":
        """Create a key, with a `preset` or `capabilities`. `key` is null if the idempotency key was used before."""
        return self._make("/v1/keys", fields, idempotency_key, dry_run=dry_run)

    def revoke_key(self, key_id: str) -> "KeyAnswerDict":
        """Revoke a key. Revoking it again has no effect."""
        return self._call("DELETE", f"/v1/keys/{part(key_id)}")

    def create_console_session(self) -> "ConsoleSessionDict":
        """Create a code with which the console in a browser gets a key of its own, once and within a minute."""
        return self._call("POST", "/v1/console/sessions")

    # The service itself

    def limits(self) -> "LimitsAnswerDict":
        """Return the limits with values and units, and the file formats that can be read."""
        return self._get("/v1/limits")

    def version(self, *, verify: str | None = None) -> "VersionDict":
        """Return the daemon's release and API versions; with `verify="writing"`, also whether it can write answers."""
        return self._get("/v1/version", {"verify": verify} if verify else None)


def _find_key(address: ServiceAddress) -> str:
    """Return the key for a service. Raises NotAuthenticated, and DaemonUnreachable if the service can't be checked."""
    from svc_cli.credentials import find_key

    credential = find_key(os.environ, address)
    if credential.installation_id is not None:
        from svc_cli.daemon.probes import get_health, refuse_other_installation
        from svc_cli.daemon.process import Installation

        health = get_health(address.base_url, Installation(os.environ).secret(), address.certificate)
        refuse_other_installation(credential, health, address.origin)
    return credential.key
