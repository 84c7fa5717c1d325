"""`svc-daemon move`: opens the data directory and the cluster, and moves an installation between them.

The lock of the data directory is held throughout. A cluster has no lock: its database is first marked as
being moved, so that no other node starts. Then, and again at the end, the move checks that no node is connected.
"""

import asyncio
import os
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from svc_daemon.cluster.engines import open_cluster
from svc_daemon.cluster.migrations import check_shared_current, migrate_shared
from svc_daemon.cluster.moving import MoveRefused, MoveReport, Place, cancel_move, move
from svc_daemon.core.ids import Ids
from svc_daemon.core.times import Clock
from svc_daemon.data_directory import NoDirectory, has_state, lock_directory, make_folders
from svc_daemon.databases.contract import Connection
from svc_daemon.operations.installations import SHARED_SECRET, prepare_secret, prepare_shared_secret, write_secret
from svc_daemon.paths import DataFiles
from svc_daemon.server.engines import open_folders, open_sqlite
from svc_daemon.settings.servers import ClusterSettings
from svc_daemon.store.rows.moves import Departure
from svc_daemon.store.rows.teams import put_fact

#: Threads that write and fsync files of a data directory.
THREADS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """The data directory and the cluster between which an installation is moved, and the direction."""

    cluster: ClusterSettings
    #: The environment variables that the engines' libraries read, such as those of AWS.
    environ: Mapping[str, str]
    #: The data directory: the move's source if `into_cluster` is set, otherwise its target.
    files: DataFiles
    #: Whether the cluster is the target.
    into_cluster: bool


def run_move(route: Route, note: Callable[[str], None]) -> tuple[MoveReport, str, str]:
    """Move the installation, or continue a move that was begun. `note` is called with lines of progress.

    Returns what was done, and the names of source and target. Raises NoDirectory, DirectoryLocked, MoveRefused, or
    ServiceError.
    """
    os.umask(0o077)
    report = MoveReport(note=note)
    clock = Clock(now=partial(datetime.now, UTC), monotonic=time.monotonic)
    root = route.files.root
    links = [path for path in root.iterdir() if path.is_symlink()] if root.is_dir() and not route.into_cluster else []
    if links:
        # What is moved there would be written to where the link leads.
        raise MoveRefused(f"{links[0]} is a link.", "An installation is moved only into a new folder.")
    with ExitStack() as stack:
        source = _open_source(stack, route)
        opening = _open_cluster(route, migrate_shared) if route.into_cluster else open_directory(route.files)
        target = stack.enter_context(opening)
        asyncio.run(move(source, target, clock, Ids(now=clock.now, random=os.urandom), report))
        return report, source.name, target.name


def run_cancel(route: Route) -> tuple[Departure, str]:
    """Cancel a move, so that daemons can use the installation again.

    Returns the record of the move, and where the installation is.

    Raises the errors of `run_move`.
    """
    with ExitStack() as stack:
        source = _open_source(stack, route)
        return asyncio.run(cancel_move(source)), source.name


def _open_source(stack: ExitStack, route: Route) -> Place:
    if route.into_cluster:
        if not has_state(route.files):
            raise NoDirectory(route.files)
        return stack.enter_context(open_directory(route.files))
    return stack.enter_context(_open_cluster(route, check_shared_current))


@contextmanager
def open_directory(files: DataFiles) -> Iterator[Place]:
    """Lock and open a data directory as one side of a move. Raises DirectoryLocked or StorageError."""
    make_folders(files)
    with lock_directory(files), ThreadPoolExecutor(THREADS) as executor:
        state = open_sqlite(files, lambda _: None)
        try:
            yield Place(
                name=str(files.root),
                state=state,
                stores=open_folders(files, executor, lambda _: None),
                read_secret=lambda: prepare_secret(files, os.urandom),
                write_secret=lambda secret: write_secret(files.secret, secret.hex()),
                is_atomic=False,
            )
        finally:
            state.close()


@contextmanager
def _open_cluster(route: Route, prepare: Callable[[Connection], None]) -> Iterator[Place]:
    with (
        TemporaryDirectory(prefix="svc-move-") as staging,
        open_cluster(route.cluster, route.environ, Path(staging), prepare) as engines,
    ):
        state, name = engines.state, route.cluster.name

        def check_unused() -> None:
            if nodes := engines.count_nodes():
                raise MoveRefused(
                    f"{nodes} {'node is' if nodes == 1 else 'nodes are'} connected to {name}.",
                    "Stop them all, then move it again.",
                )

        def leave_marks(installation_id: str) -> None:
            for mark, on_marks in engines.marks:
                on_marks(partial(mark.admit, state, installation_id=installation_id))

        yield Place(
            name=name,
            state=state,
            stores=engines.stores,
            read_secret=lambda: prepare_shared_secret(state, os.urandom),
            write_secret=lambda secret: state.write(partial(put_fact, name=SHARED_SECRET, value=secret.hex())),
            is_atomic=True,
            check_unused=check_unused,
            leave_marks=leave_marks,
        )
