"""`svc-daemon backup` and `svc-daemon restore`."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from svc_daemon import exits
from svc_daemon.command.model import JsonFlag
from svc_daemon.errors import ServiceError
from svc_daemon.paths import DataFiles, data_dir

if TYPE_CHECKING:
    from svc_daemon.offline.backing_up import BackupSummary
    from svc_daemon.offline.restoring import RestoreSummary


def backup(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="The folder for the backups, preferably on another disk.", show_default=False
        ),
    ],
    keep: Annotated[int, typer.Option(metavar="N", min=1, help="Keep the last N backups, and remove older ones.")] = 7,
    read_data: Annotated[
        bool,
        typer.Option(
            "--read-data", help="Also check the files that the previous backup already has, which takes longer."
        ),
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Back up the data directory, even while the service is running.

    Files that have not changed since the previous backup take no additional space. If a backup is interrupted, run the
    command again to continue.
    """
    started_s = time.monotonic()
    with _refusing("backup", as_json):
        from svc_daemon.offline.backing_up import BackupOptions, back_up
        from svc_daemon.store.files.backups import BackupFolder

        _refuse_cluster(as_json)
        note = exits.progress_notes()
        options = BackupOptions(
            keep=keep,
            read_data=read_data,
            now=_now,
            report=lambda done, total: note(f"backing up: {done} of {total} files"),
        )
        summary = back_up(DataFiles(data_dir(os.environ)), BackupFolder(folder.absolute()), options)
    _show("backup", summary, started_s, is_whole=not summary.problems, as_json=as_json)


def restore(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="DIR", help="The folder with the backups, or the folder of one backup.", show_default=False
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Restore the data directory from a backup.

    DIR is the backup, or a folder of backups, of which the newest is restored. The data directory must be empty. If
    a restore is interrupted, run the command again to continue.

    In a cluster, first restore the database with its own tools, then run this command without DIR.
    """
    if folder is None:
        _mark_restored(as_json)
        return
    started_s = time.monotonic()
    with _refusing("restore", as_json):
        from svc_daemon.offline.restoring import RestoreOptions
        from svc_daemon.offline.restoring import restore as run
        from svc_daemon.store.files.backups import find_backup

        _refuse_cluster(as_json)
        note = exits.progress_notes()
        options = RestoreOptions(now=_now, report=lambda done, total: note(f"restoring: {done} of {total} files"))
        summary = run(find_backup(folder.absolute()), DataFiles(data_dir(os.environ)), options)
    _show("restore", summary, started_s, is_whole=summary.is_whole, as_json=as_json)


def _mark_restored(as_json: bool) -> None:
    """Complete the restore of a cluster, after other programs have restored the database and the stored bytes."""
    from svc_daemon.data_directory import DirectoryRefused
    from svc_daemon.offline.admin_requests import Errand, Refused, run_errand
    from svc_daemon.operations.installations import mark_restored
    from svc_daemon.settings.limits import SettingError

    if not os.environ.get("SVC_STATE_URL"):
        hint = "`svc-daemon restore DIR` restores the newest backup in DIR."
        exits.refuse("svc_usage", "Name the folder of the backups.", exits.EXIT_USAGE, as_json, hint=hint)
    os.umask(0o077)
    try:
        errand = Errand(method="POST", path="/admin/restored", body=None, verb=mark_restored)
        made = run_errand(DataFiles(data_dir(os.environ)), errand)
    except DirectoryRefused as error:
        exits.refuse_directory(error, as_json)
    except SettingError as error:
        exits.refuse("svc_usage", str(error), exits.EXIT_USAGE, as_json)
    except (Refused, ServiceError) as error:
        exits.refuse("svc_error", str(error), exits.EXIT_FAILED, as_json)
    facts = {"v": 1, "type": "restore.summary", **made, "exit_code": exits.EXIT_DONE}
    exits.print_result(facts, f"all buckets have new revisions, from {made['revision']}", as_json)


def _now() -> datetime:
    return datetime.now(UTC)


def _refuse_cluster(as_json: bool) -> None:
    if os.environ.get("SVC_STATE_URL"):
        message = "This command copies data directories, and SVC_STATE_URL names the database of a cluster."
        hint = "docs/how-to/restore.md describes backups of a cluster. Unset it for the directory in SVC_DATA_DIR."
        exits.refuse("svc_usage", message, exits.EXIT_USAGE, as_json, hint=hint)


def _show(
    kind: str, summary: "BackupSummary | RestoreSummary", started_s: float, *, is_whole: bool, as_json: bool
) -> None:
    code = exits.EXIT_DONE if is_whole else exits.EXIT_FAILED
    duration_ms = round((time.monotonic() - started_s) * 1000)
    facts: dict[str, Any] = {"v": 1, "type": f"{kind}.summary", **summary.as_json()}
    exits.print_result({**facts, "duration_ms": duration_ms, "exit_code": code}, "\n".join(summary.lines()), as_json)
    raise SystemExit(code)


@contextmanager
def _refusing(verb: str, as_json: bool) -> Iterator[None]:
    """Report the errors of a backup or restore in `svc`'s format, and exit."""
    from svc_daemon.core.shortages import find_shortage
    from svc_daemon.data_directory import DirectoryRefused

    # Only this user may read files created here.
    os.umask(0o077)
    try:
        yield
    except DirectoryRefused as error:
        exits.refuse_directory(error, as_json)
    except (ServiceError, OSError) as error:
        named = f"{error.filename}: " if isinstance(error, OSError) and error.filename is not None else ""
        message = error.message if isinstance(error, ServiceError) else f"{named}{error.strerror}."
        if find_shortage(error) is not None:
            hint = f"Then run `svc-daemon {verb}` again; it continues."
            exits.refuse("svc_no_room", message, exits.EXIT_TEMPORARY, as_json, hint=hint, retryable=True)
        exits.refuse("svc_data_dir_unreadable", message, exits.EXIT_USAGE, as_json)
    except KeyboardInterrupt:
        message = f"The {verb} was interrupted."
        exits.refuse("svc_interrupted", message, exits.EXIT_INTERRUPTED, as_json, hint="The same command continues it.")
