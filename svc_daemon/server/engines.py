"""Opens the engines of an installation: SQLite and files, or PostgreSQL, S3 and Milvus for a cluster.

The cluster's part is in `cluster.engines`, which is imported only for a cluster.
"""

import os
import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial

from svc_daemon.data_directory import has_state
from svc_daemon.databases.contract import Database
from svc_daemon.databases.sqlite import SqliteDatabase
from svc_daemon.operations.installations import prepare_secret, refuse_lost_state
from svc_daemon.paths import DataFiles
from svc_daemon.process.contexts import Context
from svc_daemon.provider.contract import SearchProvider
from svc_daemon.provider.embedded.provider import EmbeddedProvider
from svc_daemon.settings.servers import ClusterSettings
from svc_daemon.store.files.blobs import Blobs
from svc_daemon.store.files.contract import ByteStores
from svc_daemon.store.files.inspections import DataFolders, SetAsideFiles
from svc_daemon.store.files.parts import Parts
from svc_daemon.store.migrations import (
    list_pending,
    migrate,
)

OnBroken = Callable[[Exception], None]


def open_sqlite(files: DataFiles, on_broken: OnBroken) -> Database:
    """Open the database in the data directory.

    Raises StorageError if the database is unusable, or if it is missing although other files exist.
    """
    refuse_lost_state(files)
    if has_state(files):
        # Refuse the state of a newer release before opening it for writing, which would empty its write-ahead log.
        list_pending(files.state)
    return SqliteDatabase(files.state, prepare=migrate, on_broken=on_broken)


def open_folders(files: DataFiles, executor: Executor, on_broken: OnBroken) -> DataFolders:
    """Open the folders of stored bytes; `executor` runs their blocking work."""
    blobs = Blobs(files, executor, partial(secrets.token_hex, 16), on_broken)
    return DataFolders(blobs, Parts(files.parts, blobs, on_broken), SetAsideFiles(files.aside))


@dataclass(frozen=True, slots=True, kw_only=True)
class Engines:
    """The functions that open a daemon's stores, by default the stores in the data directory."""

    open_state: Callable[[DataFiles, OnBroken], Database] = open_sqlite
    make_provider: Callable[..., SearchProvider] = EmbeddedProvider
    open_bytes: Callable[[DataFiles, Executor, OnBroken], ByteStores] = open_folders
    #: Returns the installation's secret.
    prepare_secret: Callable[[DataFiles, Database], bytes] = lambda files, _: prepare_secret(files, os.urandom)
    #: Checks that the engines of a cluster are those of the installation with this id. Raises SettingError. An engine
    #: that can't be reached is checked before its first use.
    check_marks: Callable[[Context, str], None] = lambda _context, _installation_id: None
    #: Returns the context. In a cluster, it has the locks, rate limits and clock that all nodes share.
    join: Callable[[AsyncExitStack, Context], Context] = lambda _, context: context


EMBEDDED = Engines()


def choose_engines(cluster: ClusterSettings | None, environ: Mapping[str, str]) -> Engines:
    """Return the functions that open the stores. Without a cluster, they open the data directory.

    `environ` contains the environment variables that the engines' libraries read, such as those of AWS. Raises
    StorageError.
    """
    if cluster is None:
        return EMBEDDED
    from svc_daemon.cluster.engines import ClusterEngines  # noqa: PLC0415 - only a cluster needs it

    engines = ClusterEngines(cluster, environ)
    return Engines(
        open_state=engines.open_state,
        make_provider=engines.make_provider,
        open_bytes=engines.open_bytes,
        prepare_secret=engines.prepare_secret,
        check_marks=engines.check_marks,
        join=engines.join,
    )
