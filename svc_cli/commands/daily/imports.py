"""`svc import`: imports files and web pages from URLs into a bucket."""

import os
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Literal

import typer

from svc_cli.client.imports import ImportRequest
from svc_cli.commands.daily.upload import parse_tags, stream_item
from svc_cli.commands.invocations import (
    BucketOption,
    DryRunOption,
    EveryOption,
    Invocation,
    NoCreateOption,
    OnGoneOption,
    TimeoutOption,
    WaitOption,
    command,
    new_app,
    parse_metadata,
    parse_refresh,
)
from svc_cli.commands.reports import show_report
from svc_cli.errors import UsageError
from svc_cli.exits import Exit
from svc_cli.transfer.imports import ImportOptions, import_one, sources_by_url, without_password
from svc_cli.transfer.reports import Report, ReportItem
from svc_cli.transfer.runs import TransferRun, resumable
from svc_cli.transfer.uploads import find_or_create, look
from svc_daemon.wire import JsonMapping

app = new_app()

#: Number of concurrent imports. The service accepts only five new sources per second.
JOBS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportFlags:
    """The options of `import`."""

    urls: Annotated[list[str], typer.Argument(metavar="URL", help="The URLs to fetch, http or https.")]
    bucket: BucketOption = None
    kind: Annotated[
        Literal["auto", "file", "page"] | None,
        typer.Option(
            "--as",
            help="Import the content unchanged (file), or only the article of a web page (page). "
            "With auto, the type of the content decides.  [default: auto]",
        ),
    ] = None
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Allow a web page with --as file, and a file with --as page. Otherwise, these are refused.",
        ),
    ] = False
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Fetch URLs again even if they are already in the bucket.")
    ] = False
    every: EveryOption = None
    on_gone: OnGoneOption = None
    webhook: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Let the service call this URL when a source is ready or has failed."),
    ] = None
    webhook_meta: Annotated[
        list[str] | None,
        typer.Option(metavar="K=V", help="Send the metadata field K with the text V in each webhook call; repeatable."),
    ] = None
    title: Annotated[
        str | None,
        typer.Option(metavar="TITLE", help="Use this title instead of the document's title; only for a single URL."),
    ] = None
    tag: Annotated[list[str] | None, typer.Option(metavar="TAG", help="Add this tag to each source; repeatable.")] = (
        None
    )
    meta: Annotated[
        list[str] | None,
        typer.Option(metavar="K=V", help="Set the metadata field K to the text V; repeatable."),
    ] = None
    wait: WaitOption = None
    timeout: TimeoutOption = None
    no_create: NoCreateOption = False
    dry_run: DryRunOption = False

    def checked(self, call: Invocation) -> ImportOptions:
        """Combine flags and settings. Raises UsageError for contradictions."""
        urls = tuple(dict.fromkeys(self.urls))
        for url in urls:
            if "://" not in url and os.path.exists(url):  # noqa: PTH110 - `Path.exists` raises for a name that is too long
                hint = "`svc upload` sends files and folders, and `svc bucket import` reads the export of a bucket."
                raise UsageError(f"{url} is not a URL, but a path on this machine.", hint=hint)
        if self.force and self.kind is None:
            raise UsageError("--force needs --as.", hint="add --as file or --as page.")
        if self.webhook_meta and self.webhook is None:
            raise UsageError("--webhook-meta goes with --webhook.")
        if self.title is not None and len(urls) > 1:
            raise UsageError("--title is for a single URL, but several were given.", hint="leave --title out.")
        metadata = parse_metadata(self.webhook_meta or [], "--webhook-meta")
        webhook = {"url": self.webhook, "metadata": metadata} if self.webhook else None
        return ImportOptions(
            urls=urls,
            bucket=call.bucket(self.bucket, "--refresh" if self.refresh else "--every" if self.every else None),
            kind=self.kind or "auto",
            pattern=ImportRequest(
                url="",
                title=self.title,
                tags=parse_tags(self.tag or []),
                metadata=dict(parse_metadata(self.meta or [])),
                force=self.force,
                webhook=webhook,
                refresh=parse_refresh(self.every, self.on_gone),
            ),
            is_refresh=self.refresh,
            wait=call.settings.get("wait", self.wait),
            timeout_s=call.limit_time(self.timeout),
            no_create=self.no_create,
            is_dry=self.dry_run,
        )


@command(
    app,
    "import",
    "svc import https://example.com/guide.pdf -b handbook",
    "svc import --as page https://example.com/blog/post -b handbook",
    "svc import --refresh https://example.com/prices -b handbook",
    "svc import --every 1d https://example.com/prices -b handbook",
)
@resumable
def import_urls(call: Invocation, flags: ImportFlags) -> Exit:
    """Import files and web pages from URLs into a bucket, and wait until a search finds them.

    The daemon fetches the URLs; its settings decide which addresses are allowed. A URL that is already in the bucket is
    fetched again only with --refresh; with --every, the service does it by itself from now on.
    """
    plan = flags.checked(call)
    report = Report(kind="import", bucket=plan.bucket, is_dry=plan.is_dry)
    with call.client() as client, call.progress() as progress:
        client.pace_creates(client.limits()["limits"]["creates_per_second"]["value"])
        _import_all(call, TransferRun(client, progress, report, partial(stream_item, call, "import.item")), plan)
    report.end([*map(without_password, plan.urls)])
    was_left = report.counts["unchanged"] and not plan.is_refresh and plan.pattern.refresh is None
    note = "what the bucket has was not fetched again; --refresh does that." if was_left else ""
    return show_report(call.console, report, note)


def _import_all(call: Invocation, run: TransferRun, plan: ImportOptions) -> None:
    client, note = run.client, call.console.note
    bucket = find_or_create(client, plan.bucket, note, may_create=not plan.no_create, is_dry=plan.is_dry)
    known = look(client, bucket)
    if known.bucket_id is None:
        # This is a dry run, which does not create the missing bucket. All URLs would be new in it.
        run.report.items = {url: ReportItem(path=url, action="created") for url in map(without_password, plan.urls)}
        return
    options = replace(plan, bucket=known.bucket_id)
    by_url = sources_by_url((source for sources in known.by_title.values() for source in sources), plan.urls)
    run.progress.begin("fetching", len(plan.urls))
    run.do_all([partial(import_one, client, url, by_url, options) for url in plan.urls], JOBS)
    if plan.wait == "ready" and not plan.is_dry:
        run.finish(plan.timeout_s)


def refresh_bucket(call: Invocation, bucket: str, *, is_all: bool, force: bool, is_dry: bool) -> Exit:
    """Fetch the sources of a bucket again that have an interval, or with `is_all` all that came from a URL."""
    report = Report(kind="refresh", bucket=bucket, is_dry=is_dry)
    with call.client() as client, call.progress() as progress:
        options = ImportOptions(
            urls=(),
            bucket=client.bucket(bucket, members=False)["id"],
            kind="auto",
            pattern=ImportRequest(url="", force=force),
            is_refresh=True,
            wait="ready",
            timeout_s=None,
            no_create=True,
            is_dry=is_dry,
        )
        wanted: dict[str, JsonMapping] = {}
        for source in client.sources(options.bucket, status="all"):
            if source.get("source_url") and (is_all or source.get("refresh")):
                # A file can be imported more than once from the same URL.
                url = str(source["source_url"])
                wanted[f"{url} ({source['id']})" if url in wanted else url] = source
        run = TransferRun(client, progress, report, partial(stream_item, call, "refresh.item"))
        run.progress.begin("fetching", len(wanted))
        run.do_all([partial(import_one, client, path, wanted, options) for path in wanted], JOBS)
        if not is_dry:
            run.finish(options.timeout_s)
    report.end(tuple(wanted))
    note = "no source has an interval; --all fetches every one that came from a URL."
    return show_report(call.console, report, "" if wanted or is_all else note)
