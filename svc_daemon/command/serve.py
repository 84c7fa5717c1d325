"""`svc-daemon serve` and `svc-daemon migrate`."""

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from svc_daemon import exits
from svc_daemon.command.model import JsonFlag
from svc_daemon.errors import NotFound, ServiceError
from svc_daemon.paths import DataFiles, data_dir
from svc_daemon.settings.daemon import Role, Settings
from svc_daemon.settings.limits import SettingError
from svc_daemon.settings.servers import ClusterSettings


def start(listen: str | None = None, role: Role = Role.ALL, faults: Path | None = None) -> None:
    """Run the service until SIGTERM or Ctrl-C. Exits with an error if it fails."""
    try:
        settings = Settings.from_environ(os.environ, listen, role, faults)
    except SettingError as error:
        exits.fail(str(error), exits.EXIT_USAGE)
    if settings.tls is None and not settings.is_loopback:
        exits.print_note(
            f"warning: {settings.host} can be reached from other machines; API keys are sent there unencrypted. "
            "Set SVC_TLS_CERT and SVC_TLS_KEY to serve HTTPS."
        )

    # Imported only now, so that an invalid setting is reported at once.
    from svc_daemon.data_directory import DirectoryLocked
    from svc_daemon.server.sockets import TooLittle, take_allowances

    try:
        take_allowances()
    except TooLittle as error:
        exits.fail(str(error), exits.EXIT_FAILED)

    # The objects that these imports create live as long as the process, so exclude them from garbage collection.
    gc.disable()
    from svc_daemon.server.server import serve as run
    from svc_daemon.server.sockets import AddressTaken

    gc.freeze()
    gc.enable()
    try:
        run(settings)
    except DirectoryLocked as error:
        exits.fail(str(error), exits.EXIT_LOCKED)
    except AddressTaken as error:
        exits.fail(str(error), exits.EXIT_ADDRESS)
    except SettingError as error:
        exits.fail(str(error), exits.EXIT_USAGE)
    except ServiceError as error:
        exits.fail(error.message, exits.EXIT_FAILED)
    except OSError as error:
        exits.fail(f"{error.filename or 'The system refused'}: {error.strerror}.", exits.EXIT_FAILED)


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
