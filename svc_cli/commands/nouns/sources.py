"""`svc source …`: lists, shows, downloads and changes sources."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from svc_cli.client.source_lookups import find_source
from svc_cli.commands.invocations import (
    BucketOption,
    DryRunOption,
    ExactSourceArgument,
    ExactSourceBucketOption,
    Invocation,
    SourceArgument,
    SourceBucketOption,
    accounted,
    command,
    new_app,
    parse_metadata,
)
from svc_cli.commands.nouns.source_views import (
    preview_retry,
    render_failures,
    render_hidden,
    render_passages,
    render_retry,
    render_source,
    render_sources,
    render_text,
    save_content,
    send_content,
)
from svc_cli.console import clean
from svc_cli.errors import TitleConflict, UsageError
from svc_cli.render import state_of
from svc_daemon.wire import JsonMapping

if TYPE_CHECKING:
    from svc_cli.client.types import SourceUpdateDict

app = new_app(
    "List, show, download, change, retry, refresh, attach, detach and delete sources.",
    "svc source ls -b handbook",
    "svc source show docs/leave.md -b handbook",
    "svc source get plan.pdf -b handbook -o plan.pdf",
)


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
        paging = {"limit": self.limit, "after": self.after}
        return {name: value for name, value in {**wanted, **paging}.items() if value is not None}


@command(
    app,
    "ls",
    "svc source ls -b handbook",
    "svc source ls -b handbook --status failed --group-by error_code",
    "svc source ls -b handbook --sort -updated_at --limit 20",
    "svc source ls -b handbook --ndjson | jq -r .title",
)
def ls(call: Invocation, flags: SourceListFlags) -> None:
    """List the sources of a bucket."""
    bucket = call.bucket(flags.bucket)
    with call.client() as client:
        answer: Any = client.sources_page(bucket, flags.filters())
    if flags.group_by is not None:
        call.console.show_page(answer, "groups", lambda: render_failures(call.console, answer["groups"]))
        return
    rendered = partial(render_sources, call.console, answer["sources"], is_sorted=flags.sort is not None)
    call.console.show_page(answer, "sources", lambda: rendered() or "no sources.")
    if answer.get("has_more"):
        call.console.note(f"there is more: --after {answer['last_id']}")


@command(app, "show", "svc source show docs/leave.md -b handbook", "svc source show src_01k3")
def show(
    call: Invocation,
    source: SourceArgument,
    bucket: SourceBucketOption = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Also check that the search index contains the source.")
    ] = False,
) -> None:
    """Show everything about one source."""
    with call.client() as client:
        answer = client.source(find_source(client, source, call.settings.get("bucket", bucket)), verify=verify)
    call.console.show(answer, lambda: render_source(call.console, answer))


@command(app, "text", "svc source text docs/leave.md -b handbook", "svc source text src_01k3 --chunks")
def text(
    call: Invocation,
    source: SourceArgument,
    bucket: SourceBucketOption = None,
    chunks: Annotated[
        bool, typer.Option("--chunks", help="Print the passages of the text, each with its page or lines.")
    ] = False,
    hidden: Annotated[
        bool, typer.Option("--hidden", help="Print only what no reader of the document sees, and no search finds.")
    ] = False,
) -> None:
    """Print the text that was extracted from a source."""
    if chunks and hidden:
        raise UsageError("Hidden text has no passages.", hint="give --chunks or --hidden.")
    with call.client() as client:
        answer = client.source_text(find_source(client, source, call.settings.get("bucket", bucket)), hidden=hidden)
    rendered = partial(render_hidden if hidden else render_passages if chunks else render_text, answer)
    call.console.show(answer, rendered)


@command(
    app,
    "get",
    "svc source get plan.pdf -b handbook -o plan.pdf",
    "svc source get notes.md -b handbook",
    "svc source get data.csv -b handbook | head",
)
def get(
    call: Invocation,
    source: SourceArgument,
    bucket: SourceBucketOption = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the bytes to this file, even if it exists, or to standard output with -.",
        ),
    ] = None,
) -> None:
    """Download the stored bytes of a source, exactly as they were uploaded.

    They are written to standard output, unless -o is given. Bytes that are not text are never written to a terminal.
    """
    output = None if output == "-" else output
    if output is None and not call.console.is_text:
        raise UsageError("Standard output can't hold both the bytes and JSON.", hint="add -o FILE.")
    with call.client() as client:
        found = client.source(find_source(client, source, call.settings.get("bucket", bucket)))
        blocks = client.source_content(found["id"])
        if output is None:
            send_content(call.console, found, blocks)
            return
        save_content(output, found, blocks)
    call.console.show({**found, "path": output}, lambda: f"wrote {clean(output)}")


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


@command(
    app,
    "set",
    "svc source set docs/leave.md -b handbook --tag hr --meta owner=Kim",
    "svc source set src_01k3zq8q4y7x --title 'Leave 2026' --remove-tag draft",
)
def set_source(call: Invocation, flags: SourceSetFlags) -> None:
    """Change the title, the tags or the metadata of a source; its bytes stay as they are."""
    if not any((flags.title, flags.tag, flags.remove_tag, flags.meta, flags.remove_meta)):
        raise UsageError("Nothing to change is given.", hint="give --title, --tag, --meta, or what to remove.")
    with call.client() as client:
        found = client.source(find_source(client, flags.source, flags.bucket, guess=False))
        changes = flags.changes(found)
        answer: JsonMapping = found
        if changes:
            answer = {**found, **changes} if flags.dry_run else client.update_source(found["id"], **changes)
    said = f"would have another {' and '.join(changes)}" if flags.dry_run else f"changed its {' and '.join(changes)}"
    said = said if changes else "is so already"
    call.console.show(_marked(answer, flags.dry_run), lambda: f"{answer['id']}  {said}  {clean(answer['title'])}")


@command(app, "retry", "svc source retry scan.pdf -b handbook", "svc source retry -b handbook --failed")
def retry(
    call: Invocation,
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="SOURCE",
            help="The source, by id, by the beginning of its id (at least 8 characters after src_), or with -b by its "
            "exact title.",
        ),
    ] = None,
    bucket: ExactSourceBucketOption = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="Retry all failed sources of the bucket that another try can help.")
    ] = False,
    code: Annotated[
        list[str] | None,
        typer.Option(metavar="CODE", help="With --failed, retry only sources with this error; repeatable."),
    ] = None,
    dry_run: DryRunOption = False,
) -> None:
    """Index a failed source, or all of a bucket, again, from the stored bytes."""
    if failed == (source is not None) or (failed and bucket is None) or (code and not failed):
        raise UsageError(
            "One source, or a bucket's failed ones, can be retried.", hint="give SOURCE, or -b and --failed."
        )
    if failed and bucket is not None:
        with call.client() as client:
            found = preview_retry(client.failures(bucket), code) if dry_run else client.retry_failed(bucket, code)
        call.console.show(_marked(found, dry_run), lambda: render_retry(found, is_dry=dry_run))
        if found["queued"] and not dry_run:
            call.console.next_step(f"svc status -b {bucket} --watch")
        return
    with call.client() as client:
        source_id = find_source(client, source or "", bucket, guess=False)
        answer = client.source(source_id) if dry_run else client.retry_source(source_id)
    said = "would be queued again" if dry_run else state_of(answer)
    call.console.show(_marked(answer, dry_run), lambda: f"{answer['id']}  {said}  {clean(answer['title'])}")
    if not dry_run:
        call.console.next_step(f"svc wait {answer['id']}")


@command(app, "refresh", "svc source refresh src_01k3zq8q4y7x")
def refresh(
    call: Invocation,
    source: ExactSourceArgument,
    bucket: ExactSourceBucketOption = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Refresh even if the URL of a page now returns a file, or the reverse."),
    ] = False,
    dry_run: DryRunOption = False,
) -> None:
    """Fetch a source from its URL again, and index it again if the content has changed."""
    with call.client() as client:
        source_id = find_source(client, source, bucket, guess=False)
        answer: JsonMapping = client.source(source_id) if dry_run else client.refresh_source(source_id, force=force)
    said = "would be fetched again" if dry_run else "changed" if answer["changed"] else "unchanged"
    call.console.show(_marked(answer, dry_run), lambda: f"{answer['id']}  {said}  {clean(answer['title'])}")
    if answer.get("changed"):
        call.console.next_step(f"svc wait {answer['id']}")


@command(app, "attach", "svc source attach src_01k3zq8q4y7x -b onboarding")
def attach(
    call: Invocation,
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="The source, by id, by the beginning of its id (at least 8 characters after src_), or by its exact "
            "title if the bucket of -b already contains it.",
        ),
    ],
    bucket: BucketOption = None,
    dry_run: DryRunOption = False,
) -> None:
    """Add a source to another bucket, given with -b."""
    target = call.bucket(bucket)
    with call.client() as client:
        source_id = find_source(client, source, bucket, guess=False, anywhere=True)
        answer = client.source(source_id) if dry_run else client.attach_source(target, source_id)
    verb = "would be attached to" if dry_run else "is in"
    call.console.show(_marked(answer, dry_run), lambda: f"{source_id} {verb} {target}")


@command(app, "detach", "svc source detach docs/leave.md -b onboarding")
def detach(
    call: Invocation,
    source: ExactSourceArgument,
    bucket: Annotated[
        str, typer.Option("--bucket", "-b", metavar="BUCKET", help="The bucket to take the source out of.")
    ],
    dry_run: DryRunOption = False,
) -> None:
    """Remove a source from the bucket given with -b; the source stays in its other buckets."""
    with call.client() as client:
        source_id = find_source(client, source, bucket, guess=False)
        answer = client.source(source_id) if dry_run else client.detach_source(bucket, source_id)
    verb = "would be taken out of" if dry_run else "is no longer in"
    call.console.show(_marked(answer, dry_run), lambda: f"{source_id} {verb} {bucket}")


@command(app, "rm", "svc source rm docs/old.md -b handbook", "svc source rm src_01k3zq8q4y7x src_01k4b2c3d4e5 --force")
def rm(
    call: Invocation,
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE",
            help="The sources, by id, by the beginning of an id (at least 8 characters after src_), or with -b by "
            "exact title.",
        ),
    ],
    bucket: ExactSourceBucketOption = None,
    force: Annotated[
        bool, typer.Option("--force", help="Delete without asking, even if an agent refers to a source.")
    ] = False,
    dry_run: DryRunOption = False,
) -> None:
    """Delete the sources that you name, with their stored bytes, from every bucket that contains them."""
    with call.client() as client, accounted(len(sources)) as outcomes:
        outcomes |= {find_source(client, source, bucket, guess=False): False for source in sources}
        # If one of several does not exist, nothing is deleted.
        found = [client.source(each) for each in outcomes] if dry_run or not force or len(outcomes) > 1 else []
        answers: list[JsonMapping] = [_marked(source, dry_run) for source in found if dry_run]
        if not force and not dry_run:
            named = ", ".join(f"{clean(source['title'])} ({source['id']})" for source in found)
            call.confirm(f"delete {named} from every bucket?")
        for source_id in outcomes if not dry_run else ():
            answers.append(client.delete_source(source_id, force=force))
            outcomes[source_id] = True
            call.console.event({"type": "source.deleted", **answers[-1]})
    verb = "would delete" if dry_run else "deleted"
    value = answers[0] if len(answers) == 1 else {"v": 1, "type": "source.deletions", "items": answers, "exit_code": 0}
    call.console.show(value, lambda: "\n".join(f"{verb} {answer['id']}" for answer in answers))


def _marked(answer: JsonMapping, is_dry: bool) -> JsonMapping:
    return {**answer, "dry_run": True} if is_dry else answer
