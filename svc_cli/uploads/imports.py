"""URLs into a bucket: the service fetches them.

In a bucket the URL is the import's identity: one that a source came from is not fetched again, unless that is asked
for. So running a command twice doubles nothing; and what has changed at its host comes in by a refresh, which costs
one request where nothing has.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from svc_cli.client.api import Client
from svc_cli.client.imports import Door, UrlImport, import_key
from svc_cli.client.transport import Answer
from svc_cli.errors import ApiError, SvcError
from svc_cli.exits import Exit
from svc_cli.uploads.deliveries import stops_everything
from svc_cli.uploads.lines import MOST_EPOCHS, too_many_epochs
from svc_cli.uploads.summaries import Item
from svc_daemon.wire import Json

Kind = Literal["auto", "file", "page"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportWishes:
    """What the user wants of every URL."""

    bucket_id: str
    kind: Kind
    #: Everything but the URL.
    pattern: UrlImport
    #: Fetch again what the bucket has.
    is_refresh: bool = False
    is_dry: bool = False


def sources_by_url(sources: Iterable[Json]) -> dict[str, Json]:
    """The sources that came from URLs, by their URL; the newest where several did."""
    return {source["source_url"]: source for source in sources if source.get("source_url")}


def take_in(client: Client, url: str, known: Mapping[str, Json], wishes: ImportWishes) -> Item:
    """Bring one URL into the bucket, or say why not. Raises SvcError only for what would stop every URL."""
    item = Item(path=url, action="created")
    try:
        if (source := known.get(url)) is not None:
            _again(client, source, item, wishes)
        else:
            _import(client, replace(wishes.pattern, url=url), item, wishes)
    except SvcError as error:
        if stops_everything(error):
            raise
        item.refuse(error)
    return item


def _again(client: Client, source: Json, item: Item, wishes: ImportWishes) -> None:
    """The bucket has this URL: leave it, fetch it anew, or have a failed one indexed again."""
    if wishes.is_refresh:
        item.action = "refreshed"
        if wishes.is_dry:
            item.source_id = source["id"]
            return
        answer = client.refresh_source(source["id"], force=wishes.pattern.force)
        item.action = "refreshed" if answer["changed"] else "unchanged"
        item.follow(answer)
    elif source["status"] == "failed":
        item.action = "retried"
        item.follow(source if wishes.is_dry else client.retry_source(source["id"]))
    else:
        item.action = "unchanged"
        item.follow(source)


def _import(client: Client, wanted: UrlImport, item: Item, wishes: ImportWishes) -> None:
    try:
        source = _through_a_door(client, wanted, wishes)
    except ApiError as error:
        if error.code != "website_url_exists":
            raise
        _known_page(client, error, item, wishes)
        return
    if source is not None:
        item.follow(source)


def _through_a_door(client: Client, wanted: UrlImport, wishes: ImportWishes) -> Json | None:
    """By the door the user chose; else by that for files, or by the one that it names."""
    try:
        return _send(client, wanted, "page" if wishes.kind == "page" else "file", wishes)
    except ApiError as error:
        if wishes.kind != "auto" or error.code != "url_is_web_page":
            raise
    return _send(client, wanted, "page", wishes)


def _send(client: Client, wanted: UrlImport, door: Door, wishes: ImportWishes) -> Json | None:
    """The new source; None in a dry run. A key whose source is gone by now gives way to the next epoch's."""
    if wishes.is_dry:
        client.import_url(wishes.bucket_id, wanted, door=door, dry_run=True)
        return None
    for epoch in range(MOST_EPOCHS):
        key = import_key(wishes.bucket_id, wanted, door, epoch)
        answer = client.import_url(wishes.bucket_id, wanted, door=door, key=key)
        source = _living(client, answer, wishes) if answer.is_replay else answer.body
        if source is not None:
            return source
    raise too_many_epochs()


def _living(client: Client, answer: Answer, wishes: ImportWishes) -> Json | None:
    try:
        source = client.source(answer.body["id"])
    except ApiError as error:
        if error.code == "source_not_found":
            return None
        raise
    return source if wishes.bucket_id in source["bucket_ids"] else None


def _known_page(client: Client, error: ApiError, item: Item, wishes: ImportWishes) -> None:
    """The team has the page, perhaps under another spelling of its URL, perhaps in another bucket."""
    source = client.source(str(error.details["source_id"]))
    if wishes.bucket_id in source["bucket_ids"]:
        _again(client, source, item, wishes)
        return
    item.action, item.source_id, item.exit = "conflict", source["id"], Exit.CONFLICT
    item.error = {**error.body(), "hint": f"`svc source attach {source['id']} -b BUCKET` puts it into this bucket too."}
