"""What is done to a stopped installation: `svc-daemon move` between a data directory and a cluster, and `migrate`.

`migrate` shows and runs what an upgrade does to the stored data.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from svc_daemon import exits
from svc_daemon.command.model import JsonFlag
from svc_daemon.errors import NotFound, ServiceError
from svc_daemon.paths import DataFiles, data_dir
from svc_daemon.settings.limits import SettingError
from svc_daemon.settings.servers import ClusterSettings

if TYPE_CHECKING:
    from svc_daemon.cluster.offline_move import Route


#: The value of `--to` that means the cluster whose addresses are in the environment variables.
CLUSTER = "cluster"


def move(
    to: Annotated[
        str,
        typer.Option(
            metavar="cluster|DIR",
            help="The new place: `cluster`, or a folder to move to from the cluster. SVC_STATE_URL, "
            "SVC_BLOBS_URL and SVC_INDEX_URL give the cluster's addresses.",
        ),
    ],
    cancel: Annotated[
        bool,
        typer.Option("--cancel", help="Cancel the last move, and use the original data again."),
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Move an installation from a data directory into a cluster, or the reverse.

    The service must be stopped. The original data is not deleted. If a move is interrupted, run the command again to
    continue.

    Example: svc-daemon move --to cluster
    """
    hint = "The same command continues the move."
    with _refusing(as_json, "svc_move_failed", hint=hint, retryable=True):
        from svc_daemon.cluster.moving import MoveRefused
        from svc_daemon.cluster.offline_move import Route

        if to != CLUSTER and os.sep not in to:
            # A slip of the pen would move the whole cluster into a folder of this name.
            raise SettingError(f"--to takes `cluster` or the path of a folder, such as /var/lib/svc, not {to!r}.")
        cluster = ClusterSettings.from_environ(os.environ)
        if cluster is None:
            raise SettingError("SVC_STATE_URL, SVC_BLOBS_URL and SVC_INDEX_URL must name the engines of the cluster.")
        files = DataFiles(data_dir(os.environ) if to == CLUSTER else Path(to).expanduser().absolute())
        route = Route(cluster=cluster, environ=os.environ, files=files, into_cluster=to == CLUSTER)
        try:
            (_cancel if cancel else _move)(route, as_json)
        except MoveRefused as error:
            exits.refuse("svc_move_refused", error.message, exits.EXIT_REFUSED, as_json, hint=error.hint)


@contextmanager
def _refusing(as_json: bool, code: str, *, hint: str | None = None, retryable: bool = False) -> Iterator[None]:
    """Report an error and exit. `code`, `hint` and `retryable` are for errors of the service."""
    from svc_daemon.data_directory import DirectoryRefused

    try:
        yield
    except SettingError as error:
        exits.refuse("svc_usage", str(error), exits.EXIT_USAGE, as_json)
    except DirectoryRefused as error:
        exits.refuse_directory(error, as_json)
    except NotFound as error:
        exits.refuse("svc_data_dir_not_found", error.message, exits.EXIT_MISSING, as_json)
    except ServiceError as error:
        exits.refuse(code, error.message, exits.EXIT_FAILED, as_json, hint=hint, retryable=retryable)
    except OSError as error:
        exits.refuse("svc_file_refused", f"{error.filename}: {error.strerror}.", exits.EXIT_USAGE, as_json)


def _cancel(route: "Route", as_json: bool) -> None:
    from svc_daemon.cluster.offline_move import run_cancel

    departure, name = run_cancel(route)
    fields = {"from": name, "to": departure.to, "was_done": departure.is_done}
    exits.print_result(fields, f"{name} can be used again", as_json)
    if departure.is_done:
        exits.print_note(f"warning: {departure.to} has the same installation; what one of them gets, the other lacks")


def _move(route: "Route", as_json: bool) -> None:
    from svc_daemon.cluster.offline_move import run_move

    report, source, target = run_move(route, exits.progress_notes())
    fields = {
        "installation_id": report.installation_id,
        "from": source,
        "to": target,
        "was_done": report.was_done,
        "sources": report.sources,
        "copied_blobs": report.copied,
        "copied_bytes": report.copied_bytes,
        "kept_blobs": report.kept,
        "upload_sessions": report.sessions,
        "rows": report.rows,
    }
    done = f"moved {report.sources} sources from {source} to {target}"
    exits.print_result(fields, f"{source} was moved to {target} already" if report.was_done else done, as_json)
    exits.print_note(
        "start the service there; it rebuilds the search indexes first, and searches are refused until then"
    )


def migrate(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be done. The service need not be stopped.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Upgrade the state database to this release, as the next start of the service would.

    The state database is copied first. If an upgrade is interrupted, run the command again to continue.

    Example: svc-daemon migrate --dry-run
    """
    # Only this user may read files created here.
    os.umask(0o077)
    with _refusing(as_json, "svc_migrate_refused"):
        from svc_daemon.offline.upgrading import plan_upgrade, upgrade, upgrade_cluster

        cluster, files = ClusterSettings.from_environ(os.environ), DataFiles(data_dir(os.environ))
        if cluster is not None:
            report = upgrade_cluster(cluster, os.environ, files, dry_run=dry_run)
        else:
            report = plan_upgrade(files) if dry_run else upgrade(files)
    exits.print_result(report.as_json(), "\n".join(report.lines()), as_json)
