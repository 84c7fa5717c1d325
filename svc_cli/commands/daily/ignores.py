"""`svc ignore`: shows which files a sync skips, and why, without a service."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from svc_cli.commands.daily.sync import project_mappings
from svc_cli.commands.invocations import Invocation, command, new_app
from svc_cli.errors import FileRefused, PathMissing
from svc_cli.exits import Exit
from svc_cli.render import table
from svc_cli.transfer.rooted_files import Root
from svc_cli.transfer.skips import code_of
from svc_cli.transfer.snapshots import Filters, Snapshot, explain_all

app = new_app("Show which files a sync skips, and which rule excludes them.")

PathArguments = Annotated[
    list[str], typer.Argument(metavar="PATH", help="The files or folders to check; they don't have to exist.")
]
RootOption = Annotated[
    str, typer.Option("--root", metavar="DIR", help="Apply the ignore rules that a sync of this folder applies.")
]


@command(app, "check", "svc ignore check docs/draft.md", "svc ignore check --root docs docs/*.tmp")
def check(call: Invocation, paths: PathArguments, root: RootOption = ".") -> Exit:
    """Show whether a sync includes each path, or which rule excludes it."""
    exclude = _exclude(call, Path(root))
    try:
        found = explain_all(Path(root), paths, exclude)
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
        str, typer.Argument(metavar="DIR", help="The folder to look in.  [default: the current folder]")
    ] = ".",
) -> Exit:
    """List the files in a folder that a sync skips, each with the reason.

    Files that are too large or have an unsupported type are not listed; `svc diff` lists them.
    """
    root = Path(folder)
    if not root.is_dir():
        raise PathMissing(f"{folder}: there is no such folder.", details={"path": folder})
    filters = Filters(exclude=_exclude(call, root), max_bytes=sys.maxsize, max_path_characters=sys.maxsize)
    snapshot = Snapshot(Root(root), filters)
    taken = sum(1 for _ in snapshot)
    items = [{"path": skip.path, "reason": skip.reason, "reason_code": code_of(skip.reason)} for skip in snapshot.skips]
    rows = [(item["path"], item["reason"]) for item in items]
    call.console.show({"items": items, "taken": taken}, lambda: table(call.console, ("path", "left out"), rows))
    return Exit.FAILED if any(skip.error_code for skip in snapshot.skips) else Exit.DONE


def _exclude(call: Invocation, root: Path) -> tuple[str, ...]:
    """Return the patterns that exclude files of this folder: those of svc.toml, and `sync.exclude`."""
    known = next((each for each in project_mappings(call) if each.folder.resolve() == root.resolve()), None)
    return (*(known.exclude if known else ()), *call.settings.get("sync.exclude"))
