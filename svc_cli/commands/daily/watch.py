"""`svc watch …`: keeps buckets up to date with their folders while files change."""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from queue import SimpleQueue
from typing import Annotated, Any

import typer

from svc_cli.commands.daily.sync import (
    ExcludeOption,
    FolderFlags,
    IncludeOption,
    NameOption,
    PruneOption,
    SyncFlags,
    choose_mapping,
    find_max_delete,
    options_for,
    options_of,
    ownership_of,
    project_mappings,
    prune_of,
)
from svc_cli.commands.daily.watch_screens import Display, render_line, render_mappings, render_states
from svc_cli.commands.invocations import (
    BucketOption,
    DryRunOption,
    Invocation,
    TimeoutOption,
    command,
    new_app,
    parse_duration,
)
from svc_cli.console import Console
from svc_cli.daemon.connections import connected
from svc_cli.errors import Interrupted, PathMissing, SafetyStop, UsageError, WaitTimedOut
from svc_cli.exits import Exit
from svc_cli.given_files import absolute
from svc_cli.sync.mappings import Added, Mapping, Ownership, is_same, name_of, refuse_overlaps, refuse_unreachable
from svc_cli.sync.watch.records import Record
from svc_cli.transfer.reports import worst
from svc_cli.transfer.rooted_files import find_way_out, refuse_way_out
from svc_daemon import paths
from svc_daemon.wire import Json

app = new_app(
    "Keep buckets up to date with their folders while files change.",
    "svc watch run docs -b handbook",
    "svc watch add docs -b handbook",
    "svc watch status",
)

FolderArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="DIR",
        help="The folder to watch.  [default: all folders in svc.toml, and those added with `svc watch add`]",
    ),
]
NamesArgument = Annotated[
    str | None,
    typer.Argument(metavar="NAME", help="The name of a watched folder, as listed by `svc watch ls`.  [default: all]"),
]
#: Seconds between two reads of a watcher's state.
LOOK_S = 0.05
FLUSH_TIMEOUT_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFlags(FolderFlags):
    """The options of `svc watch run`."""

    folder: FolderArgument = None
    stay: Annotated[
        bool, typer.Option("--stay", help="If there is nothing to watch yet, wait for `svc watch add`.")
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AddFlags:
    """The options of `svc watch add`."""

    folder: Annotated[str, typer.Argument(metavar="DIR", help="The folder to watch from now on.")]
    bucket: BucketOption = None
    name: NameOption = None
    prune: PruneOption = None
    include: IncludeOption = None
    exclude: ExcludeOption = None
    tag: Annotated[
        list[str] | None, typer.Option("--tag", metavar="TAG", help="Put this tag on each source; repeatable.")
    ] = None
    dry_run: DryRunOption = False


@command(app, "run", "svc watch run docs -b handbook", "svc watch run", "svc watch run docs -b handbook --prune detach")
def run(call: Invocation, flags: RunFlags) -> Exit:
    """Sync one or more folders, and then each change in them, until Ctrl-C.

    A saved file is searchable a moment later. Sources of deleted files stay in the bucket unless --prune is given.
    """
    from svc_cli.sync.watch.engines import Engine, Reporter

    shared = {each.name: getattr(flags, each.name) for each in fields(RunFlags) if each.name != "stay"}
    engine = Engine(lambda: _connect(call, SyncFlags(**shared)), paths.state_dir(call.settings.environ))
    display, reporter = Display(call.console), Reporter(lambda: _connect_quietly(call))
    with display, closing(engine):
        try:
            while True:
                _watch(call, flags, engine, display, reporter)
        except KeyboardInterrupt as interrupt:
            code = Interrupted.of(interrupt).exit
    # A service is stopped by SIGTERM, and has not failed then.
    code = Exit.DONE if code is Exit.TERMINATED else code
    summary = {"v": 1, "type": "watch.summary", "mappings": display.states, "exit_code": int(code)}
    call.console.show(summary, lambda: "")
    call.console.note("stopped; later changes are sent by the next `svc watch run` or `svc sync`.")
    return code


def _watch(call: Invocation, flags: RunFlags, engine: Any, display: Display, reporter: Any) -> None:
    """Watch the mappings until a mapping is added or removed."""
    from svc_cli.sync.watch import loops
    from svc_cli.sync.watch.watchers import WatchCallbacks, Watcher

    added = Added.of(paths.config_dir(call.settings.environ))
    stamp = added.stamp()
    mappings = _mappings(call, flags)
    # Connect now, so that a connection error ends the command. After later connection errors, the watcher tries again.
    engine.session()
    bell: SimpleQueue[None] = SimpleQueue()
    watchers: list[Watcher] = []
    callbacks = WatchCallbacks(
        display.show_item, display.show_note, display.show_withheld, lambda: display.show(watchers)
    )
    watchers += [Watcher(each, engine, _record(call, each), callbacks, bell) for each in mappings]
    loops.run(
        watchers,
        bell,
        lambda: flags.folder is None and added.stamp() != stamp,
        lambda: reporter.report([each.facts() for each in watchers], time.monotonic()),
    )


@contextmanager
def _connect(call: Invocation, flags: SyncFlags) -> Iterator[Any]:
    from svc_cli.sync.watch.engines import WatchSession

    max_delete = find_max_delete(call)
    with call.client() as client:
        options = options_of(call, client, flags, max_delete)
        yield WatchSession(client, lambda mapping: options_for(call, mapping, options, flags))


@contextmanager
def _connect_quietly(call: Invocation) -> Iterator[Any]:
    """Connect without a word, and start no daemon."""
    from io import StringIO

    silent = Console(StringIO(), StringIO(), call.settings.environ, is_quiet=True)
    with connected(call.settings, silent, base_url=call.flags.base_url, autostart=False) as (client, _):
        yield client


@command(app, "add", "svc watch add docs -b handbook", "svc watch add notes -b notes --exclude 'drafts/'")
def add(call: Invocation, flags: AddFlags) -> None:
    """Add a folder to those that `svc watch run` watches, even while the command is running."""
    folder = _folder(flags.folder)
    refuse_way_out(folder, find_way_out(Path(flags.folder)))
    bucket, in_project = call.bucket(flags.bucket, "svc watch add"), project_mappings(call)
    # The folder may be in svc.toml, which the watcher of `svc daemon install` doesn't read. Its settings count, too.
    same = next((each for each in in_project if is_same(each, folder, bucket)), None)
    name = flags.name or (same.name if same and same.ownership is Ownership.NAMED else None)
    mapping = Mapping(
        name=name or name_of(folder),
        folder=folder,
        bucket=bucket,
        include=tuple(flags.include or (same.include if same else ())),
        exclude=tuple(flags.exclude or (same.exclude if same else ())),
        tags=tuple(flags.tag or (same.tags if same else ())),
        prune=flags.prune or (same.prune if same and same.is_trusted else None),
        ownership=ownership_of(call, name, flags.bucket),
    )
    added = Added.of(paths.config_dir(call.settings.environ))
    known = added.read()
    if mapping.name in {each.name for each in known}:
        raise UsageError(
            f"A mapping named {mapping.name!r} already exists.", hint="`svc watch ls` shows it; --name gives another."
        )
    refuse_overlaps([*(each for each in in_project if each is not same), *known, mapping], "svc watch add")
    if not flags.dry_run:
        added.write([*known, mapping])
    value = {**_as_json(mapping, str(added.path)), "dry_run": flags.dry_run}
    done = "would watch" if flags.dry_run else "watched from now on:"
    call.console.show(value, lambda: f"{done} {folder} into {mapping.bucket}, as {mapping.name}")
    call.console.next_step("svc watch run")


@command(app, "rm", "svc watch rm docs")
def remove(
    call: Invocation,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The name of a watched folder, as listed by `svc watch ls`.")
    ],
    dry_run: DryRunOption = False,
) -> None:
    """Stop watching a folder; the folder and its bucket are not changed."""
    added = Added.of(paths.config_dir(call.settings.environ))
    known = added.read()
    mapping = next((each for each in known if each.name == name), None)
    if mapping is None:
        # If the name is unknown, this raises PathMissing. Otherwise the mapping is in svc.toml.
        _known(call, name)
        raise UsageError(f"{name} is in {call.settings.project_file}.", hint="remove its [[map]] there.")
    if not dry_run:
        added.write([each for each in known if each is not mapping])
        if not _record(call, mapping).is_held:
            _record(call, mapping).forget()
    done = (
        f"{'would be ' if dry_run else ''}no longer watched: {mapping.folder}; bucket {mapping.bucket} stays as it is"
    )
    call.console.show({**_as_json(mapping, str(added.path)), "removed": not dry_run, "dry_run": dry_run}, lambda: done)


@command(app, "ls", "svc watch ls")
def list_(call: Invocation) -> None:
    """List the folders that `svc watch run` watches, with the settings in effect."""
    get = call.settings.get
    in_effect = {each: get(f"sync.{each}") for each in ("max_delete", "follow_links")}
    found = [
        {
            **_as_json(mapping, source),
            "include": [*mapping.include, *get("sync.include")],
            "exclude": [*mapping.exclude, *get("sync.exclude")],
            "prune": prune_of(call, mapping)[0],
            **in_effect,
        }
        for mapping, source in _known(call)
    ]
    call.console.show({"mappings": found}, lambda: render_mappings(call.console, found))


@command(app, "status", "svc watch status", "svc watch status docs --json")
def status(call: Invocation, name: NamesArgument = None) -> None:
    """Show the state of each watched folder, and how many changes are not synced yet.

    Also shows how often the whole folder was synced, and for what reasons.
    """
    states = [_state(record, mapping) for record, mapping in _watched(call, name)]
    call.console.show({"mappings": states}, lambda: render_states(call.console, states))


@command(app, "flush", "svc watch flush docs --timeout 5m")
def flush(call: Invocation, name: NamesArgument = None, timeout: TimeoutOption = None) -> Exit:
    """Make the running watcher compare each whole folder with its bucket now, and wait until all changes are synced."""
    held = [(record, mapping) for record, mapping in _watched(call, name) if record.is_held]
    if not held:
        raise PathMissing(
            f"No watcher runs{f' for {name}' if name else ' here'}.",
            code="svc_not_watched",
            hint="`svc watch run` starts one, `svc sync` syncs once.",
        )
    timeout_s = parse_duration(timeout)
    deadline_s = time.monotonic() + (FLUSH_TIMEOUT_S if timeout_s is None else timeout_s)
    # Only who names a folder accepts what has become of it.
    asked = {record: record.ask(accepts_root=name is not None) for record, _ in held}
    while left := [record for record, token in asked.items() if record.read_state().get("flushed") != token]:
        if not left[0].is_held:
            raise PathMissing("The watcher has ended meanwhile.", code="svc_not_watched")
        if time.monotonic() > deadline_s:
            raise WaitTimedOut(
                "The watcher has not finished the sync yet; it continues.",
                hint="`svc watch status` shows how far it is.",
            )
        time.sleep(LOOK_S)
    states = [_state(record, mapping) for record, mapping in held]
    call.console.show({"mappings": states}, lambda: render_states(call.console, states))
    errors = [state["error"] for state in states if state.get("error")]
    return worst(Exit.SAFETY if error["code"] == SafetyStop.code else Exit.FAILED for error in errors)


@command(app, "log", "svc watch log docs -n 20")
def log(
    call: Invocation,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The name of a watched folder, as listed by `svc watch ls`.")
    ],
    lines: Annotated[
        int, typer.Option("--lines", "-n", metavar="N", min=0, help="Show the last N lines.  [default: 50]")
    ] = 50,
) -> None:
    """Show what the watcher has logged about one folder."""
    found = _watched(call, name)[0][0].read_log(lines)
    for line in found:
        call.console.event(line)
    value = {"object": "watch.log", "mapping": name, "lines": found}
    call.console.show(value, lambda: "\n".join(render_line(line) for line in found))


def _mappings(call: Invocation, flags: RunFlags) -> list[Mapping]:
    """Return the mappings to watch. Raises UsageError if two mappings overlap, or if there are none without --stay."""
    known = [mapping for mapping, _ in _known(call)]
    if flags.folder is not None:
        _folder(flags.folder)
        return [choose_mapping(call, known, Path(flags.folder), flags)]
    if flags.bucket or flags.name:
        raise UsageError(
            "-b and --name need a folder.", hint="`svc watch run DIR -b BUCKET`, or neither for all mappings."
        )
    if not known and not flags.stay:
        raise UsageError("There is nothing to watch.", hint="`svc watch add DIR -b B`, or a [[map]] in svc.toml.")
    refuse_overlaps(known, "svc watch run")
    for each in known:
        refuse_unreachable(each)
    return known


def _known(call: Invocation, name: str | None = None) -> list[tuple[Mapping, str]]:
    """Return the mappings with the files that define them. Raises PathMissing if no mapping has the given name."""
    added = Added.of(paths.config_dir(call.settings.environ))
    own, project = added.read(), project_mappings(call)
    # A folder in both files has the settings of svc.toml, unless that is a stranger's.
    weaker, stronger = (own, project) if call.settings.may_project_widen else (project, own)
    twins = [each for each in weaker if any(is_same(other, each.folder, each.bucket) for other in stronger)]
    found = [(each, str(call.settings.project_file)) for each in project]
    found += [(each, str(added.path)) for each in own]
    found = [pair for pair in found if not any(pair[0] is each for each in twins)]
    named = [pair for pair in found if name in (None, pair[0].name)]
    if name is not None and not named:
        raise PathMissing(f"There is no mapping {name!r} here.", hint="`svc watch ls` shows them.")
    return named


def _folder(text: str) -> Path:
    folder = absolute(Path(text))
    if not folder.is_dir():
        raise PathMissing.of_folder(folder)
    return folder


def _record(call: Invocation, mapping: Mapping) -> Record:
    service = call.settings.get("base_url", call.flags.base_url) or ""
    return Record.of(mapping, paths.state_dir(call.settings.environ), service)


def _watched(call: Invocation, name: str | None) -> list[tuple[Record, Json]]:
    """Return all mappings that are configured or being watched, or only those named `name`.

    Raises PathMissing if no mapping has this name.
    """
    found = {_record(call, mapping): _as_json(mapping) for mapping, _ in _known(call)}
    for record in Record.all(paths.state_dir(call.settings.environ)):
        if record not in found and (record.is_held or name is not None):
            found[record] = {}
    pairs = [(record, value | record.read_state()) for record, value in found.items()]
    named = [(record, value) for record, value in pairs if name in (None, value.get("mapping"))]
    if name is not None and not named:
        raise PathMissing(f"There is no mapping {name!r} here.", hint="`svc watch status` shows them.")
    return named


def _state(record: Record, value: Json) -> Json:
    """Return the last state that the watcher wrote, and whether it is running now."""
    state, running = {**value, **record.read_state()}, record.is_held
    return {**state, "running": running, "state": state.get("state", "stopped") if running else "stopped"}


def _as_json(mapping: Mapping, source: str | None = None) -> Json:
    value = {"mapping": mapping.name, **mapping.fields()}
    return value if source is None else {**value, "source": source}
