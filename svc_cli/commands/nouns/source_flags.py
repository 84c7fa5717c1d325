"""The options of `svc source ls` and `svc source set`, and what they ask the service for."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from svc_cli.commands.invocations import (
    BucketOption,
    DryRunOption,
    EveryOption,
    ExactSourceArgument,
    ExactSourceBucketOption,
    OnGoneOption,
    parse_metadata,
    parse_refresh,
)
from svc_cli.errors import TitleConflict
from svc_daemon.wire import JsonMapping

if TYPE_CHECKING:
    from svc_cli.client.types import SourceUpdateDict


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceListFlags:
    """The options of `source ls`."""

    bucket: BucketOption = None
    status: Annotated[
        Literal["ready", "all", "queued", "indexing", "failed"],
        typer.Option(help="List only sources in this state."),
    ] = "all"
    type: Annotated[
        Literal["file", "page", "qa"] | None,
        typer.Option("--type", help="List only files (file), web pages (page), or questions with answers (qa)."),
    ] = None
    tag: Annotated[str | None, typer.Option(metavar="TAG", help="List only sources with this tag.")] = None
    match: Annotated[
        str | None, typer.Option(metavar="WORDS", help="List only sources with all these words in title or file name.")
    ] = None
    title: Annotated[str | None, typer.Option(metavar="TITLE", help="List only sources with exactly this title.")] = (
        None
    )
    code: Annotated[str | None, typer.Option(metavar="CODE", help="List only sources that failed with this error.")] = (
        None
    )
    stale: Annotated[
        bool, typer.Option("--stale", help="List only sources whose last refresh by the service failed.")
    ] = False
    sort: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Sort by title, created_at, updated_at, size_bytes or status; descending with - before it.",
        ),
    ] = None
    group_by: Annotated[
        Literal["error_code"] | None,
        typer.Option("--group-by", help="Count the failed sources by their error instead of listing them."),
    ] = None
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=1000, help="List at most N sources, 1 to 1000.")
    ] = None
    after: Annotated[
        str | None,
        typer.Option(metavar="ID", help="List only what follows the `last_id` of a page, to get the next page."),
    ] = None

    def filters(self) -> dict[str, str | int]:
        """Build the query parameters. Without a status, the API lists only ready sources."""
        status = None if self.status == "ready" else self.status
        if self.code or self.group_by:
            status = "failed"
        wanted = {"status": status, "type": self.type, "tag": self.tag, "q": self.match, "title": self.title}
        wanted |= {"error_code": self.code, "sort": self.sort, "group_by": self.group_by}
        wanted |= {"stale": "true"} if self.stale else {}
        paging = {"limit": self.limit, "after": self.after}
        return {name: value for name, value in {**wanted, **paging}.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSetFlags:
    """The arguments and options of `source set`."""

    source: ExactSourceArgument
    bucket: ExactSourceBucketOption = None
    title: Annotated[str | None, typer.Option(metavar="TITLE", help="Give the source this title.")] = None
    tag: Annotated[list[str] | None, typer.Option(metavar="TAG", help="Add this tag; repeatable.")] = None
    remove_tag: Annotated[list[str] | None, typer.Option(metavar="TAG", help="Remove this tag; repeatable.")] = None
    meta: Annotated[
        list[str] | None, typer.Option(metavar="K=V", help="Set the metadata field K to the text V; repeatable.")
    ] = None
    remove_meta: Annotated[
        list[str] | None, typer.Option(metavar="K", help="Remove the metadata field K; repeatable.")
    ] = None
    every: EveryOption = None
    on_gone: OnGoneOption = None
    dry_run: DryRunOption = False

    def changes(self, source: JsonMapping) -> "SourceUpdateDict":
        """Return the fields of the source that change. Raises TitleConflict if a sync owns the title."""
        tags, metadata = dict.fromkeys((*source["tags"], *(self.tag or ()))), dict(source["metadata"])
        tags = {tag: None for tag in tags if tag not in (self.remove_tag or ())}
        metadata |= parse_metadata(self.meta or [])
        metadata = {name: value for name, value in metadata.items() if name not in (self.remove_meta or ())}
        changes: SourceUpdateDict = {}
        if list(tags) != source["tags"]:
            changes["tags"] = list(tags)
        if metadata != source["metadata"]:
            changes["metadata"] = metadata
        if (refresh := parse_refresh(self.every, self.on_gone)) is not None and not _is_scheduled(source, refresh):
            changes["refresh"] = refresh
        if self.title is not None and self.title != source["title"]:
            changes["title"] = self.title
            if source.get("mapping"):
                raise TitleConflict(
                    f"The synced folder {source['mapping']!r} knows {source['id']} by its title; nothing was changed.",
                    code="svc_title_of_mapping",
                    hint="rename the file in the folder and sync it; tags and metadata can be changed here.",
                    details={"source_id": source["id"], "mapping": source["mapping"]},
                )
        return changes


def _is_scheduled(source: JsonMapping, choice: JsonMapping) -> bool:
    """Return whether the source has this schedule already."""
    now = source.get("refresh") or {"every_seconds": 0, "on_gone": None}
    wanted = choice.get("on_gone") or now["on_gone"]
    return bool(now["every_seconds"] == choice["every_seconds"] and now["on_gone"] == wanted)
