"""`svc-daemon migrate`: shows and runs what an upgrade does to the stored data."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from svc_daemon import exits
from svc_daemon.command.model import JsonFlag
from svc_daemon.errors import NotFound, ServiceError
from svc_daemon.paths import DataFiles, data_dir
from svc_daemon.settings.limits import SettingError
from svc_daemon.settings.servers import ClusterSettings


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
    with _refusing(as_json):
        from svc_daemon.offline.upgrading import plan_upgrade, upgrade, upgrade_cluster

        cluster, files = ClusterSettings.from_environ(os.environ), DataFiles(data_dir(os.environ))
        if cluster is not None:
            report = upgrade_cluster(cluster, os.environ, files, dry_run=dry_run)
        else:
            report = plan_upgrade(files) if dry_run else upgrade(files)
    exits.print_result(report.as_json(), "\n".join(report.lines()), as_json)


@contextmanager
def _refusing(as_json: bool) -> Iterator[None]:
    """Report an error of the upgrade, and exit."""
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
        exits.refuse("svc_migrate_refused", error.message, exits.EXIT_FAILED, as_json)
    except OSError as error:
        exits.refuse("svc_file_refused", f"{error.filename}: {error.strerror}.", exits.EXIT_USAGE, as_json)
