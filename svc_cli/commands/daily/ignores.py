"""`svc ignore`: shows which files a sync skips, and why, without a service."""

import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from svc_cli.commands.daily.sync import project_mappings
from svc_cli.commands.invocations import Invocation, command, new_app
from svc_cli.errors import FileRefused, PathMissing
from svc_cli.exits import Exit
from svc_cli.render import table
from svc_cli.sync.mappings import Added, Mapping
from svc_cli.transfer.rooted_files import Root
from svc_cli.transfer.skips import Skip, code_of
from svc_cli.transfer.snapshots import Filters, Snapshot, explain_all
from svc_daemon import paths

app = new_app("Show which files a sync skips, and which rule excludes them.")

PathArguments = Annotated[
    list[str], typer.Argument(metavar="PATH", help="The files or folders to check; they don't have to exist.")
]
RootOption = Annotated[
    str | None,
    typer.Option(
        "--root",
        metavar="DIR",
        help="Apply the rules that a sync of this folder applies.  [default: the synced folder that a path is in]",
    ),
]


@command(app, "check", "svc ignore check docs/draft.md", "svc ignore check --root docs docs/*.tmp")
def check(call: Invocation, names: PathArguments, root: RootOption = None) -> Exit:
    """Show whether a sync includes each path, or which rule excludes it."""
    known = _mappings(call)
    roots = {path: _root_of(known, Path(path).parent) for path in names if root is None}
    try:
        found = [
            explain_all(at, [path], _exclude(call, known, at))[0]
            for path in names
            for at in [Path(root) if root is not None else roots[path] or Path()]
        ]
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise FileRefused(f"{where}{error.strerror}.", code="svc_file_unreadable") from error
    rows = [
        (
            *(each.path, each.reason or "taken", each.at if each.is_ignored else ""),
            f"{each.origin}: {each.pattern}" if each.origin else "",
        )
        for each in found
    ]
    items = {"items": [asdict(each) for each in found]}
    call.console.show(items, lambda: table(call.console, ("path", "", "at", "rule"), rows))
    return Exit.DONE


@command(app, "list", "svc ignore list docs")
def list_ignored(
    call: Invocation,
    folder: Annotated[
        str | None,
        typer.Argument(metavar="DIR", help="The folder to look in.  [default: the synced folders here, or this one]"),
    ] = None,
) -> Exit:
    """List the files in a folder that a sync skips, each with the reason.

    Files that are too large or have an unsupported type are not listed; `svc diff` lists them.
    """
    known, looked = _mappings(call), Path(folder or os.curdir)
    if not looked.is_dir():
        raise PathMissing.of_folder(looked)
    inner = [] if folder is not None or _root_of(known, looked) else [each.folder for each in known]
    inner = [each for each in inner if each.is_dir() and each.resolve().is_relative_to(looked.resolve())]
    skips, taken = list[Skip](), 0
    for place in inner or [looked]:
        root = _root_of(known, place) or place
        inside = place.resolve().relative_to(root.resolve()).as_posix()
        start = "" if inside == os.curdir else f"{inside}/"
        shown = f"{Path(os.path.relpath(place)).as_posix()}/" if inner else ""
        exclude = _exclude(call, known, root)
        filters = Filters(exclude=exclude, max_bytes=sys.maxsize, max_path_characters=sys.maxsize)
        snapshot = Snapshot(Root(root), filters, start=start, shown=shown)
        taken += sum(1 for _ in snapshot)
        skips += snapshot.skips
    items = [{"path": skip.path, "reason": skip.reason, "reason_code": code_of(skip.reason)} for skip in skips]
    rows = [(item["path"], item["reason"]) for item in items]
    call.console.show({"items": items, "taken": taken}, lambda: table(call.console, ("path", "left out"), rows))
    return Exit.FAILED if any(skip.error_code for skip in skips) else Exit.DONE


def _mappings(call: Invocation) -> list[Mapping]:
    """Return the mappings of svc.toml, and those that `svc watch add` has added."""
    return [*project_mappings(call), *Added.of(paths.config_dir(call.settings.environ)).read()]


def _root_of(known: Sequence[Mapping], folder: Path) -> Path | None:
    """Return the synced folder that a folder is, or is in; None if there is none."""
    return next((each.folder for each in known if folder.resolve().is_relative_to(each.folder.resolve())), None)


def _exclude(call: Invocation, known: Sequence[Mapping], root: Path) -> tuple[str, ...]:
    """Return the patterns that exclude files of this folder: those of its mapping, and `sync.exclude`."""
    mapping = next((each for each in known if each.folder.resolve() == root.resolve()), None)
    return (*(mapping.exclude if mapping else ()), *call.settings.get("sync.exclude"))
