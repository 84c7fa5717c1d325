"""`svc source …`: lists, shows, downloads and changes sources."""

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from svc_cli.client.source_lookups import find_source
from svc_cli.commands.invocations import (
    BucketOption,
    DryRunOption,
    ExactSourceArgument,
    ExactSourceBucketOption,
    ExactSourceOrNone,
    Invocation,
    SourceArgument,
    SourceBucketOption,
    accounted,
    command,
    new_app,
)
from svc_cli.commands.nouns.source_flags import SourceListFlags, SourceSetFlags
from svc_cli.commands.nouns.source_views import (
    preview_retry,
    render_failures,
    render_hidden,
    render_passages,
    render_retry,
    render_source,
    render_sources,
    render_text,
    retry_scans,
    save_content,
    send_content,
)
from svc_cli.console import clean
from svc_cli.errors import UsageError
from svc_cli.exits import Exit
from svc_cli.render import state_of
from svc_daemon.wire import JsonMapping

if TYPE_CHECKING:
    pass

app = new_app(
    "List, show, download, change, retry, refresh, attach, detach and delete sources.",
    "svc source ls -b handbook",
    "svc source show docs/leave.md -b handbook",
    "svc source get plan.pdf -b handbook -o plan.pdf",
)


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


@command(app, "show", "svc source show docs/leave.md -b handbook", "svc source show src_01k3zq8q4y7x")
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


@command(app, "text", "svc source text docs/leave.md -b handbook", "svc source text src_01k3zq8q4y7x --chunks")
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


@command(
    app,
    "set",
    "svc source set docs/leave.md -b handbook --tag hr --meta owner=Kim",
    "svc source set src_01k3zq8q4y7x --title 'Leave 2026' --remove-tag draft",
    "svc source set src_01k3zq8q4y7x --every 1d",
)
def set_source(call: Invocation, flags: SourceSetFlags) -> None:
    """Change the title, tags or metadata of a source, or how often it is fetched again; its bytes stay as they are."""
    if not any((flags.title, flags.tag, flags.remove_tag, flags.meta, flags.remove_meta, flags.every, flags.on_gone)):
        raise UsageError("Nothing to change is given.", hint="give --title, --tag, --meta, --every or what to remove.")
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
    source: ExactSourceOrNone = None,
    bucket: ExactSourceBucketOption = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="Retry all failed sources of the bucket that another try can help.")
    ] = False,
    ocr: Annotated[
        bool, typer.Option("--ocr", help="Read all scans and pictures that failed before their text was recognised.")
    ] = False,
    code: Annotated[
        list[str] | None,
        typer.Option(metavar="CODE", help="With --failed, retry only sources with this error; repeatable."),
    ] = None,
    dry_run: DryRunOption = False,
) -> None:
    """Index a source again that failed or has unread pages, or all failed ones of a bucket, from the stored bytes."""
    if [source is not None, failed, ocr].count(True) != 1 or (failed and bucket is None) or (code and not failed):
        raise UsageError(
            "One source, or a bucket's failed ones, can be retried.",
            hint="give SOURCE, or -b and --failed, or --ocr for all scans.",
        )
    if source is None:
        with call.client() as client:
            if ocr:
                found = retry_scans(client, bucket, is_dry=dry_run)
            else:
                named = bucket or ""
                found = preview_retry(client.failures(named), code) if dry_run else client.retry_failed(named, code)
        call.console.show(_marked(found, dry_run), lambda: render_retry(found, is_dry=dry_run))
        if found["queued"] and not dry_run:
            call.console.next_step(f"svc status -b {bucket} --watch" if bucket else "svc status --watch")
        return
    with call.client() as client:
        source_id = find_source(client, source, bucket, guess=False)
        answer = client.source(source_id) if dry_run else client.retry_source(source_id)
    said = "would be queued again" if dry_run else state_of(answer)
    call.console.show(_marked(answer, dry_run), lambda: f"{answer['id']}  {said}  {clean(answer['title'])}")
    if not dry_run:
        call.console.next_step(f"svc wait {answer['id']}")


@command(app, "refresh", "svc source refresh src_01k3zq8q4y7x", "svc source refresh -b handbook --all")
def refresh(
    call: Invocation,
    source: ExactSourceOrNone = None,
    bucket: ExactSourceBucketOption = None,
    is_all: Annotated[
        bool, typer.Option("--all", help="With -b, fetch every source that came from a URL, not only with an interval.")
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Refresh even if another kind of content has taken its place: a file, a page, or a login form.",
        ),
    ] = False,
    dry_run: DryRunOption = False,
) -> Exit:
    """Fetch a source from its URL again, and index it again if the content has changed.

    With -b alone, fetch all sources of the bucket that have an interval (`svc source set --every`).
    """
    if (source is None and bucket is None) or (source is not None and is_all):
        raise UsageError(
            "Either one source is refreshed, or those of a bucket.",
            hint="`svc source refresh SOURCE`, or `svc source refresh -b BUCKET`; --all goes with the latter.",
        )
    if source is None and bucket is not None:
        from svc_cli.commands.daily.imports import refresh_bucket

        return refresh_bucket(call, bucket, is_all=is_all, force=force, is_dry=dry_run)
    with call.client() as client:
        source_id = find_source(client, source or "", bucket, guess=False)
        answer: JsonMapping = client.source(source_id) if dry_run else client.refresh_source(source_id, force=force)
    said = "would be fetched again" if dry_run else "changed" if answer["changed"] else "unchanged"
    call.console.show(_marked(answer, dry_run), lambda: f"{answer['id']}  {said}  {clean(answer['title'])}")
    if answer.get("changed") and not answer["ready"]:
        call.console.next_step(f"svc wait {answer['id']}")
    return Exit.DONE


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
