"""`svc upload`: uploads files, folders, patterns or standard input."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal

import typer

from svc_cli.commands.invocations import (
    BucketOption,
    DryRunOption,
    ImagesOption,
    Invocation,
    JobsOption,
    NoCreateOption,
    StrictOption,
    TimeoutOption,
    WaitOption,
    command,
    new_app,
    parse_metadata,
)
from svc_cli.commands.reports import show_report
from svc_cli.errors import NOTHING, UsageError
from svc_cli.exits import Exit
from svc_cli.transfer.reports import Report, ReportItem
from svc_cli.transfer.runs import TransferRun, resumable
from svc_cli.transfer.selections import expand, select
from svc_cli.transfer.skips import readable_extensions
from svc_cli.transfer.snapshots import Filters
from svc_cli.transfer.uploads import UploadOptions, find_or_create, look, send_files

app = new_app()

#: Maximum value of `--jobs`.
MOST_JOBS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadFlags:
    """The options of `svc upload`. If an option is None, the setting applies."""

    paths: Annotated[
        list[str], typer.Argument(metavar="PATH", help="Files, folders or patterns to upload, or - for standard input.")
    ]
    bucket: BucketOption = None
    title: Annotated[
        str | None,
        typer.Option(metavar="TITLE", help="Use this title instead of the file's path; only for a single file."),
    ] = None
    tag: Annotated[list[str] | None, typer.Option(metavar="TAG", help="Add this tag to each file; repeatable.")] = None
    meta: Annotated[
        list[str] | None,
        typer.Option(metavar="K=V", help="Set the metadata field K to the text V; repeatable."),
    ] = None
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace a changed file in the bucket once the new version is ready.")
    ] = False
    as_new: Annotated[
        bool,
        typer.Option("--as-new", help="Add a changed file, or one known by a longer or shorter path, as a new source."),
    ] = False
    wait: WaitOption = None
    timeout: TimeoutOption = None
    mode: Annotated[
        Literal["auto", "one", "session", "batch"] | None,
        typer.Option(
            help="Send each file in one request (one) or a resumable session (session), or many together "
            "(batch). With auto, the number and sizes of the files decide.  [default: auto]"
        ),
    ] = None
    jobs: JobsOption = None
    no_create: NoCreateOption = False
    strict: StrictOption = False
    images: ImagesOption = False
    dry_run: DryRunOption = False


@command(
    app,
    "upload",
    "svc upload docs -b handbook",
    "svc upload report.pdf -b handbook --title 'Report 2026' --replace",
    "pandoc notes.odt -t plain | svc upload - -b handbook --title notes.txt",
)
@resumable
def upload(call: Invocation, flags: UploadFlags) -> Exit:
    """Upload files into a bucket, and wait until a search finds them.

    If you run the command again, nothing is sent twice. A file that differs from the one in the bucket is a conflict,
    unless --replace or --as-new is given. Hidden, ignored (.gitignore, .svcignore) and unsupported files in folders are
    skipped.
    """
    options = upload_options(call, flags)
    report = Report(bucket=options.bucket, is_dry=options.is_dry, is_strict=options.is_strict)
    # Called now, so that PathMissing is raised before a daemon is started.
    expand(options.paths)
    with call.client() as client:
        limits = client.limits()
        client.pace_creates(limits["limits"]["creates_per_second"]["value"])
        filters = Filters(
            extensions=readable_extensions(limits),
            pictures=frozenset() if flags.images else readable_extensions(limits, pictures=True),
            max_bytes=limits["limits"]["file_bytes"]["value"],
            max_path_characters=limits["limits"]["title_characters"]["value"],
        )
        selection = select(options.paths, filters, options.title)
        titles = [file.title for file in selection.files]
        may_create, note = not options.no_create, call.console.note
        bucket = None
        # If there is nothing to send, no bucket is created.
        if selection.files or any(skip.error_code not in (None, NOTHING) for skip in selection.skips):
            bucket = find_or_create(client, options.bucket, note, may_create=may_create, is_dry=options.is_dry)
        known = look(client, bucket, titles)
        with call.progress() as progress:
            run = TransferRun(client, progress, report, partial(stream_item, call, "upload.item"))
            send_files(run, selection.files, known, options, filters.max_bytes)
            if options.wait == "ready" and not options.is_dry:
                run.finish(options.timeout_s)
    report.end(titles, selection.skips)
    return show_report(call.console, report)


def upload_options(call: Invocation, flags: UploadFlags) -> UploadOptions:
    """Combine flags and settings. Raises UsageError."""
    settings = call.settings
    if flags.replace and flags.as_new:
        raise UsageError("--replace and --as-new can't be combined.")
    return UploadOptions(
        paths=tuple(flags.paths),
        bucket=call.bucket(flags.bucket, "--replace" if flags.replace else None),
        title=flags.title,
        tags=parse_tags(settings.get("upload.tags", flags.tag)),
        metadata=parse_metadata(flags.meta or []),
        on_conflict="replace" if flags.replace else "as_new" if flags.as_new else "ask",
        wait=settings.get("wait", flags.wait),
        timeout_s=call.limit_time(settings.get("upload.timeout", flags.timeout)),
        mode=settings.get("upload.mode", flags.mode),
        jobs=check_jobs(settings.get("upload.jobs", flags.jobs)),
        no_create=flags.no_create or settings.get("upload.no_create"),
        is_strict=flags.strict or settings.get("upload.strict"),
        is_dry=flags.dry_run,
    )


def parse_tags(tags: Sequence[str]) -> tuple[str, ...]:
    """Return the tags. Raises UsageError if one is empty or contains a comma."""
    if any("," in tag or not tag.strip() for tag in tags):
        raise UsageError("A tag can't be empty or contain a comma.", hint="repeat the flag: --tag a --tag b.")
    return tuple(tags)


def check_jobs(jobs: int) -> int:
    """Return the number of concurrent uploads. Raises UsageError if it is out of range."""
    if not 1 <= jobs <= MOST_JOBS:
        raise UsageError(f"--jobs takes 1 to {MOST_JOBS}, not {jobs}.")
    return jobs


def stream_item(call: Invocation, kind: str, item: ReportItem) -> None:
    """Print an item as an event, only with `--ndjson`."""
    call.console.event({"type": kind, **item.as_json()})
