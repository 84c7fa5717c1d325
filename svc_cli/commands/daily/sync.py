"""`svc sync`: brings a bucket up to date with a folder."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from svc_cli.client.api import Client
from svc_cli.commands.daily.upload import check_jobs, stream_item
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
)
from svc_cli.commands.reports import render_report, suggest_next
from svc_cli.errors import Interrupted, SvcError, UsageError, WaitTimedOut
from svc_cli.exits import Exit
from svc_cli.given_files import absolute
from svc_cli.sync.mappings import (
    PRUNES,
    Mapping,
    Ownership,
    Prune,
    find_mapping,
    name_of,
    read_mappings,
    refuse_overlaps,
    refuse_unreachable,
)
from svc_cli.sync.run_state import SyncOptions, SyncReport
from svc_cli.sync.safety import MaxDelete
from svc_cli.sync.syncs import sync
from svc_cli.transfer.reports import worst
from svc_cli.transfer.rooted_files import find_way_out, refuse_way_out
from svc_cli.transfer.runs import resumable
from svc_cli.transfer.skips import readable_extensions
from svc_cli.transfer.snapshots import Filters
from svc_cli.transfer.transfers import stops_everything
from svc_daemon import paths

app = new_app()

FolderArgument = Annotated[
    str | None, typer.Argument(metavar="DIR", help="The folder to sync.  [default: the current folder]")
]
AllOption = Annotated[
    bool,
    typer.Option("--all", help="Use all folders that svc.toml defines, instead of one."),
]
NameOption = Annotated[
    str | None,
    typer.Option(
        "--name",
        metavar="NAME",
        help="Give the synced folder this name.  [default: its path in the Git repository, otherwise its own name]",
    ),
]
IncludeOption = Annotated[
    list[str] | None,
    typer.Option("--include", metavar="GLOB", help="Include only files that match this pattern; repeatable."),
]
ExcludeOption = Annotated[
    list[str] | None,
    typer.Option("--exclude", metavar="GLOB", help="Exclude files that match this pattern; repeatable."),
]
LinksOption = Annotated[
    bool, typer.Option("--follow-links", help="Follow symbolic links whose targets are inside the folder.")
]
ChecksumOption = Annotated[
    bool,
    typer.Option("--checksum", help="Compare the content of every file, not only its size and times."),
]
RemoteOption = Annotated[
    bool,
    typer.Option(
        "--verify-remote",
        help="Ask the service what the bucket contains, instead of using the list that the last sync stored on this "
        "machine.",
    ),
]
AcceptOption = Annotated[
    bool,
    typer.Option(
        "--accept-root",
        help="Sync the folder even if it has become a symbolic link, or has another owner, or a disk inside of it is "
        "missing, since the last sync.",
    ),
]
LeftOutOption = Annotated[
    bool,
    typer.Option(
        "--prune-left-out",
        help="Prune the sources of files, too, that are still there but left out now, for example by a new rule; "
        "with --prune detach unless another is given.",
    ),
]
PruneOption = Annotated[
    Prune | None,
    typer.Option(
        help="Keep the sources of deleted files (none), remove them from this bucket (detach), or delete "
        "them from all buckets (delete).  [default: none]"
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderFlags:
    """The options of `sync`, `diff` and `watch` for a folder and its bucket; None means: use the setting."""

    folder: FolderArgument = None
    bucket: BucketOption = None
    name: NameOption = None
    prune: PruneOption = None
    include: IncludeOption = None
    exclude: ExcludeOption = None
    follow_links: LinksOption = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffFlags(FolderFlags):
    """The options of `svc diff`."""

    all: AllOption = False
    checksum: ChecksumOption = False
    verify_remote: RemoteOption = False
    accept_root: AcceptOption = False
    prune_left_out: LeftOutOption = False
    images: ImagesOption = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncFlags(DiffFlags):
    """The options of `svc sync`."""

    max_delete: Annotated[
        str | None,
        typer.Option(
            metavar="N|P%",
            help="Remove nothing if more files than this were deleted from the folder: a number such as 50, or a share "
            "such as 5%. With a share, 10 deletions are always allowed.  [default: 25%]",
        ),
    ] = None
    wait: WaitOption = None
    timeout: TimeoutOption = None
    jobs: JobsOption = None
    no_create: NoCreateOption = False
    strict: StrictOption = False
    dry_run: DryRunOption = False
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with code 10 if a dry run finds anything to change.")
    ] = False


@command(
    app,
    "sync",
    "svc sync docs -b handbook",
    "svc sync docs -b handbook --prune detach --dry-run",
    "svc sync --all",
)
@resumable
def sync_command(call: Invocation, flags: SyncFlags) -> Exit:
    """Bring a bucket up to date with a folder, and wait until all files are searchable.

    Only changed files are sent. Sources of deleted files stay in the bucket unless --prune is given. Sources that sync
    did not create are never changed. If a sync is interrupted, run the command again to continue.
    """
    return run(call, flags)


def run(call: Invocation, flags: SyncFlags) -> Exit:
    """Sync the mappings that the flags select, and report."""
    call.limit_time(call.settings.get("sync.timeout", flags.timeout))
    if meant := _in_this_folder(call, flags):
        flags = replace(flags, all=True)
    for each in meant:
        refuse_unreachable(each)
    mappings = meant or _find_mappings(call, flags)
    max_delete = find_max_delete(call, flags.max_delete)
    reports = _sync_all(call, mappings, flags, max_delete) if flags.all else []
    reports = reports or [_sync(call, mappings[0], flags, max_delete)]
    code = worst(report.exit for report in reports)
    summary = {"v": 1, "type": "sync.summary", "mappings": [report.as_json() for report in reports]}
    value = {**summary, "exit_code": int(code)} if flags.all else reports[0].as_json()
    call.console.show(value, lambda: "\n\n".join(render_report(call.console, report) for report in reports))
    for report in reports:
        if error := report.stopped_by or (report.nothing if report.exit is Exit.FAILED else None):
            call.console.fail(error)
        suggest_next(call.console, report)
    return code


def _in_this_folder(call: Invocation, flags: SyncFlags) -> list[Mapping]:
    """Return the mappings that are meant by no folder at all: those that are in the current one, or around it."""
    if flags.all or flags.folder or flags.bucket or flags.name:
        return []
    here = f"{os.path.realpath(os.curdir)}{os.sep}"
    known = [(f"{os.path.realpath(each.folder)}{os.sep}", each) for each in project_mappings(call)]
    found = [each for folder, each in known if folder.startswith(here) or here.startswith(folder)]
    # The mapping of the folder itself is synced alone, without the frame of several.
    return [] if [folder for folder, _ in known].count(here) == 1 else found


def _find_mappings(call: Invocation, flags: SyncFlags) -> list[Mapping]:
    known = project_mappings(call)
    if not flags.all:
        # `--name` without a folder selects a known mapping, wherever its folder is.
        named = find_mapping(known, None, flags.name, flags.bucket) if flags.name and not flags.folder else None
        folder = named.folder if named else Path(flags.folder or ".")
        return [choose_mapping(call, known, folder, flags)]
    if flags.folder or flags.bucket or flags.name:
        raise UsageError("--all takes no folder, -b or --name.", hint="name one folder, or use --all without these.")
    if not known:
        raise UsageError("No `svc.toml` with a [[map]] was found.", hint="name the folder, or add a [[map]].")
    for each in known:
        refuse_unreachable(each)
    return known


def choose_mapping(call: Invocation, known: Sequence[Mapping], folder: Path, flags: FolderFlags) -> Mapping:
    """Return the known mapping that the flags select, or a new mapping. Raises UsageError."""
    # Looked for in the path as it was typed: `absolute` resolves a link in front of `..`.
    way_out = find_way_out(folder)
    found = find_mapping(known, folder, flags.name, flags.bucket)
    if found is not None:
        bounds = found.bounds
        if not way_out and (flags.folder or not flags.name):
            # Who names the folder by its real path, or is in it, may sync it wherever it is.
            bounds = (Path(os.path.realpath(folder)),) if find_way_out(found.folder) else ()
        found = replace(found, ownership=Ownership.NAMED if flags.name else found.ownership, bounds=bounds)
        refuse_unreachable(found)
        return found
    refuse_way_out(folder, way_out)
    other = find_mapping(known, None, flags.name, flags.bucket) if flags.name else None
    if other is not None:
        raise UsageError(
            f"The mapping {other.name!r} is of {other.folder}, not of {folder}.",
            hint="leave the folder out, or give another --name.",
        )
    # A link stays a link: after a deployment, it leads to another folder of the same mapping.
    folder, bucket = absolute(folder), call.bucket(flags.bucket)
    name, ownership = flags.name or name_of(folder), ownership_of(call, flags.name, flags.bucket)
    mapping = Mapping(name=name, folder=folder, bucket=bucket, ownership=ownership)
    refuse_overlaps([*known, mapping], str(call.settings.project_file or "svc"))
    return mapping


def project_mappings(call: Invocation) -> list[Mapping]:
    """Return the mappings in svc.toml; none if there is no such file."""
    project = call.settings.project
    if project is None or not project.tables:
        return []
    known = read_mappings(project.tables, project.path, call.settings.get("bucket"))
    known = [replace(each, bounds=call.settings.find_bounds(each.folder)) for each in known]
    if call.settings.may_project_widen:
        return known
    return [replace(each, ownership=Ownership.SENT, is_trusted=False) for each in known]


def ownership_of(call: Invocation, name: str | None, bucket: str | None) -> Ownership:
    """Return the ownership of a mapping that is not in svc.toml. `name` and `bucket` are those of the command line."""
    if name is not None:
        return Ownership.NAMED
    return Ownership.SENT if call.settings.is_strangers("bucket", bucket) else Ownership.SEEN


def find_max_delete(call: Invocation, flag: str | None = None) -> MaxDelete:
    """Return the limit of the flag or the settings. Raises UsageError if it is not valid."""
    found = call.settings.find("sync.max_delete", flag)
    return MaxDelete.parse(found.value, found.withheld)


def options_of(call: Invocation, client: Client, flags: SyncFlags, max_delete: MaxDelete) -> SyncOptions:
    """Return the options for all mappings, and set the client's rate limit."""
    limits = client.limits()
    client.pace_creates(limits["limits"]["creates_per_second"]["value"])
    get, known = call.settings.get, limits["limits"]
    links = call.settings.find("sync.follow_links", flags.follow_links or None)
    return SyncOptions(
        filters=Filters(
            follow_links=links.value,
            extensions=readable_extensions(limits),
            pictures=readable_extensions(limits, pictures=True),
            max_bytes=known["file_bytes"]["value"],
            max_path_characters=known["title_characters"]["value"],
        ),
        max_tags=known["tags"]["value"],
        max_tag_characters=known["tag_characters"]["value"],
        max_delete=max_delete,
        withheld={"follow_links": "true"} if links.withheld else {},
        wait=get("wait", flags.wait),
        timeout_s=call.deadline.timeout_s,
        jobs=check_jobs(get("sync.jobs", flags.jobs)),
        is_thorough=flags.checksum,
        verify_remote=flags.verify_remote,
        is_strict=flags.strict or get("sync.strict"),
        is_dry=flags.dry_run,
        accepts_root=flags.accept_root,
        accepts_missing=flags.accept_root,
        exits_pending=flags.exit_code,
        may_create=not (flags.no_create or get("sync.no_create")),
    )


def _sync_all(
    call: Invocation, mappings: Sequence[Mapping], flags: SyncFlags, max_delete: MaxDelete
) -> list[SyncReport]:
    """Sync the mappings one by one. Most errors end the sync of one mapping only; Ctrl-C ends all."""
    reports: list[SyncReport] = []
    for mapping in mappings:
        try:
            reports.append(_sync(call, mapping, flags, max_delete))
        except SvcError as error:
            # The mappings for which no time is left are reported, too.
            if stops_everything(error) and not isinstance(error, WaitTimedOut):
                raise
            reports.append(SyncReport(mapping=mapping.name, bucket=mapping.bucket, stopped_by=error))
        if isinstance(reports[-1].stopped_by, Interrupted):
            break
    return reports


def _sync(call: Invocation, mapping: Mapping, flags: SyncFlags, max_delete: MaxDelete) -> SyncReport:
    """Sync one mapping with a client of its own, because a stopped client can't be used again."""
    with call.client() as client:
        options = options_for(call, mapping, options_of(call, client, flags, max_delete), flags)
        index_path = mapping.index_path(paths.state_dir(call.settings.environ), client.service)
        with call.progress() as progress:
            report = sync(client, mapping, options, index_path, progress, partial(stream_item, call, "sync.item"))
    if flags.all and report.nothing is not None and not report.items:  # empty, and not named by the user
        report.remarks.append(report.nothing.message)
        report.nothing = None
    for withheld in report.withheld:
        call.console.event({"type": "sync.withheld", "mapping": mapping.name, **withheld.as_json()})
    return report


def options_for(call: Invocation, mapping: Mapping, options: SyncOptions, flags: SyncFlags) -> SyncOptions:
    """Add the filters and the `prune` setting of one mapping to `options`.

    If the mapping is of a project's file that is not trusted, it can only ask for less than the settings.
    """
    get = call.settings.get
    filters = replace(
        options.filters,
        include=(*mapping.include, *get("sync.include", flags.include)),
        exclude=(*mapping.exclude, *get("sync.exclude", flags.exclude)),
        # The settings are for all folders, and match in some.
        asked=(*mapping.include, *mapping.exclude, *(flags.include or ()), *(flags.exclude or ())),
        pictures=frozenset() if flags.images or (mapping.images and mapping.is_trusted) else options.filters.pictures,
    )
    prune, asked = prune_of(call, mapping, flags.prune)
    if flags.prune_left_out and prune == "none":
        prune, asked = "detach", None
    withheld = {**options.withheld, "prune": asked} if asked else options.withheld
    if mapping.images and not (mapping.is_trusted or flags.images):
        withheld = {**withheld, "images": "true"}
    left_out = flags.prune_left_out
    return replace(options, filters=filters, prune=prune, prunes_left_out=left_out, withheld=withheld)


def prune_of(call: Invocation, mapping: Mapping, flag: Prune | None = None) -> tuple[Prune, str | None]:
    """Return what a mapping does with the sources of deleted files, and what its file asks for in vain."""
    found = call.settings.find("sync.prune", flag)
    if flag is not None or mapping.prune is None:
        return found.value, found.withheld
    is_more = not mapping.is_trusted and PRUNES.index(mapping.prune) > PRUNES.index(found.value)
    return (found.value, mapping.prune) if is_more else (mapping.prune, None)
