"""One file of an upload: read it, decide, and say what is to be sent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from svc_cli.client.api import Client
from svc_cli.client.batches import Member
from svc_cli.client.uploads import Description
from svc_cli.errors import FileRefused, NetworkFailed, SvcError
from svc_cli.exits import Exit
from svc_cli.uploads.decisions import Decision, OnConflict, Verb, decide
from svc_cli.uploads.readings import FileContent, read
from svc_cli.uploads.selections import Candidate, Skip, is_utf8
from svc_cli.uploads.summaries import Item
from svc_daemon.wire import Json

_ACTIONS = {
    Verb.CREATE: "created",
    Verb.REPLACE: "replaced",
    Verb.RETRY: "retried",
    Verb.UNCHANGED: "unchanged",
    Verb.CONFLICT: "conflict",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the user wants of every file of this upload."""

    #: Slug or id, as the user wrote it.
    bucket: str
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any]
    on_conflict: OnConflict = "ask"
    #: Decide only; send nothing.
    is_dry: bool = False
    max_bytes: int


@dataclass(frozen=True, slots=True)
class Holdings:
    """What the bucket held when the run began. `bucket_id` is None while the bucket does not exist."""

    bucket_id: str | None
    #: Sources by title, oldest first.
    by_title: Mapping[str, Sequence[Json]]


@dataclass(frozen=True, slots=True)
class Parcel:
    """A file that is to be sent. `item` tells what becomes of it."""

    item: Item
    content: FileContent
    description: Description

    @property
    def size_bytes(self) -> int:
        return self.content.size_bytes

    @property
    def member(self) -> Member:
        """The file as one of a batch."""
        return Member(self.description, self.size_bytes)


def examine(client: Client, candidate: Candidate, holdings: Holdings, wishes: Wishes) -> Item | Parcel:
    """What is to be sent of one file, or what became of it where nothing is.

    Raises SvcError only for what would stop every file.
    """
    item = Item(path=candidate.title, action="created")
    try:
        if not is_utf8(candidate.title):
            raise FileRefused("the name is not UTF-8.", code="svc_name_not_utf8", hint="rename it, or give --title.")
        return _examine(client, candidate, holdings, wishes, item)
    except SvcError as error:
        if stops_everything(error):
            raise
        item.refuse(error)
    return item


def item_of_skip(skip: Skip) -> Item:
    """What was left out as a report shows it; what no policy left out has failed."""
    item = Item(path=skip.path, action="skipped", reason=skip.reason)
    if skip.error_code is not None:
        item.reason = None
        item.refuse(FileRefused(f"{skip.reason}.", code=skip.error_code))
    return item


def stops_everything(error: SvcError) -> bool:
    """Whether the next file would meet the same end: a refused key, a missing bucket, a dead line."""
    is_bucket = error.code in {"bucket_not_found", "bucket_assignment_failed"}
    is_dead = isinstance(error, NetworkFailed) and error.is_dead
    return is_bucket or is_dead or error.exit in {Exit.DENIED, Exit.UNREACHABLE, Exit.INCOMPATIBLE, Exit.USAGE}


def _examine(client: Client, candidate: Candidate, holdings: Holdings, wishes: Wishes, item: Item) -> Item | Parcel:
    reading = read(candidate, wishes.max_bytes)
    item.size_bytes, item.sha256 = reading.size_bytes, reading.sha256
    decision = decide(holdings.by_title.get(candidate.title, ()), reading.sha256, wishes.on_conflict)
    item.action = _ACTIONS[decision.verb]
    if decision.verb is Verb.CONFLICT:
        _report_conflict(item, decision)
    elif decision.verb is Verb.UNCHANGED and decision.source:
        item.follow(decision.source)
    elif wishes.is_dry:
        item.source_id = decision.source["id"] if decision.source else None
    elif decision.verb is Verb.RETRY and decision.source:
        item.follow(client.retry_source(decision.source["id"]))
    else:
        return Parcel(item, FileContent(candidate, reading), _describe(item, decision, wishes))
    return item


def _describe(item: Item, decision: Decision, wishes: Wishes) -> Description:
    return Description(
        filename=PurePath(item.path).name or item.path,
        title=item.path,
        tags=wishes.tags,
        metadata=dict(wishes.metadata),
        sha256=item.sha256,
        replaces=decision.source["id"] if decision.source else None,
    )


def _report_conflict(item: Item, decision: Decision) -> None:
    source = decision.source or {}
    item.source_id, item.status, item.ready = source.get("id"), source.get("status"), bool(source.get("ready"))
    item.exit = Exit.CONFLICT
    item.error = {
        "code": "svc_title_conflict",
        "message": f"the bucket has other bytes under this title ({item.source_id}); nothing was sent.",
        "retryable": False,
        "details": {"source_id": item.source_id, "sha256": source.get("sha256")},
        "hint": "--replace swaps it when the new one is ready, --as-new puts the new one beside it.",
    }
