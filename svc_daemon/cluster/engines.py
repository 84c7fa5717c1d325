"""Opens the engines of a cluster, PostgreSQL, S3 and Milvus: for a node, and for commands that run beside nodes.

`server.engines` registers them. The libraries of a cluster are imported only here, as late as they are needed.
"""

import logging
import os
import secrets
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlencode, urlsplit

from svc_daemon.cluster.marks import MILVUS_MARK, S3_MARK, EngineMark, MarkedEngine
from svc_daemon.cluster.migrations import check_shared_current, join_shared, list_pending_shared, migrate_shared
from svc_daemon.cluster.nodes import join_cluster
from svc_daemon.databases.contract import Connection, Database
from svc_daemon.errors import StorageError, WrongEngine
from svc_daemon.operations.installations import prepare_shared_secret, write_secret
from svc_daemon.paths import DataFiles
from svc_daemon.process.contexts import Context
from svc_daemon.process.engine_states import KNOWN_S
from svc_daemon.provider.contract import Inspector, SearchProvider
from svc_daemon.provider.errors import ProviderError
from svc_daemon.settings.limits import SettingError
from svc_daemon.settings.servers import ClusterSettings
from svc_daemon.store.files.contract import ByteStores
from svc_daemon.store.files.inspections import BytesInspector
from svc_daemon.store.migrations import PendingMigration
from svc_daemon.wire.light.extras import install_command
from svc_daemon.wire.services import EngineName

if TYPE_CHECKING:
    from svc_daemon.cluster.milvus.server import MilvusServer

log = logging.getLogger(__name__)

OnBroken = Callable[[Exception], None]
#: The environment variable that names a file of trusted certificate authorities.
AUTHORITIES = "SSL_CERT_FILE"
_LOOPBACK = ("", "localhost", "127.0.0.1", "::1")


class ClusterEngines:
    """The functions that open the stores of a node, as in `server.engines.Engines`. Each raises StorageError."""

    def __init__(self, cluster: ClusterSettings, environ: Mapping[str, str]) -> None:
        """`environ` contains the environment variables that the engines' libraries read, such as those of AWS."""
        self._cluster = cluster
        self._environ = {**environ, AUTHORITIES: _find_authorities(environ)}
        self._state_url = checked_tls(cluster.state_url, self._environ)
        #: The clock for the search index: the clock of the database server.
        self._now_s: Callable[[], float] = time.time
        #: The database, with the marks of the other engines. It is opened first.
        self._state: Database | None = None
        #: The id of the installation that this node serves; None in a command.
        self._installation_id: str | None = None
        #: The marks that this node has found, by the engines' names.
        self._known: dict[str, str] = {}

    def open_state(self, _files: DataFiles, on_broken: OnBroken) -> Database:
        # Unlike with SQLite, a failed commit doesn't make the daemon exit: `on_broken` is called only if a newer
        # release changes the schema.
        with _needing_extra():
            from svc_daemon.cluster.postgres.database import PostgresDatabase  # noqa: PLC0415

        self._state = PostgresDatabase(self._state_url, prepare=migrate_shared, join=join_shared, on_broken=on_broken)
        return self._state

    def open_bytes(self, files: DataFiles, executor: Executor, _on_broken: OnBroken) -> ByteStores:
        with _needing_extra():
            from svc_daemon.cluster.s3.stores import open_objects  # noqa: PLC0415

        stores = open_objects(self._cluster.blobs_url, self._environ, files.staging, executor)
        stores.blobs.client.admit = partial(self._admit, S3_MARK)
        return stores

    def make_provider(self, _folder: Path, *, clock: Callable[[], float], **_options: Any) -> SearchProvider:
        with _needing_extra():
            from svc_daemon.cluster.milvus.provider import MilvusProvider  # noqa: PLC0415

        server = _open_milvus_server(self._cluster, self._environ[AUTHORITIES], clock)
        server.admit = partial(self._admit, MILVUS_MARK)
        return MilvusProvider(server, now_ns=lambda: int(self._now_s() * 1e9), random_bits=lambda: secrets.randbits(32))

    def prepare_secret(self, files: DataFiles, database: Database) -> bytes:
        """Return the secret that all nodes share, and write it where `svc` reads it to verify the daemon."""
        secret = prepare_shared_secret(database, os.urandom)
        write_secret(files.secret, secret.hex())
        return secret

    def check_marks(self, context: Context, installation_id: str) -> None:
        """Check that the engines are those of this installation. Raises SettingError."""
        self._installation_id = installation_id
        for check in (context.stores.check_reachable, context.provider.check_reachable):
            try:
                check()
            except (StorageError, ProviderError) as error:
                wrong = error if isinstance(error, WrongEngine) else error.__cause__
                if isinstance(wrong, WrongEngine):
                    # A wrong address is a wrong setting.
                    raise SettingError(wrong.message) from error
                log.warning("an engine can't be used yet: %s", error)

    def join(self, stack: AsyncExitStack, context: Context) -> Context:
        """Return the context with the locks, rate limits and clock that all nodes share."""
        node = f"node-{secrets.token_hex(8)}"
        joined = join_cluster(stack, self._state_url, node, context.limits, context.wakes)
        self._now_s = joined.now_s
        joining = joined.share(context)
        context.engines.watch({"postgresql": joined.check_server}, joining.clock, KNOWN_S)
        remote: dict[EngineName, Callable[[], None]] = {
            "s3": context.stores.check_reachable,
            "milvus": context.provider.check_reachable,
        }
        context.engines.watch(remote, joining.clock)
        context.shortages.explain = context.engines.explain
        return joining

    def _admit(self, mark: EngineMark, engine: MarkedEngine) -> None:
        known = self._known.get(mark.engine)
        if self._state is None or (known and engine.has_mark(known)):
            return
        # `verify --repair` may have replaced the mark.
        if found := mark.admit(self._state, engine, self._installation_id):
            self._known[mark.engine] = found


def _find_authorities(environ: Mapping[str, str]) -> str:
    """Return the file of certificate authorities: the one in `environ`, or certifi's."""
    import certifi  # noqa: PLC0415 - only a cluster needs it

    file = environ.get(AUTHORITIES) or certifi.where()
    try:
        ssl.create_default_context(cafile=file)
    except OSError as error:
        # The `strerror` of an SSLError doesn't explain the problem.
        reason = "it has no certificates in PEM form" if isinstance(error, ssl.SSLError) else error.strerror
        raise StorageError(f"{AUTHORITIES} names {file}, which can't be used: {reason}.") from error
    return file


def checked_tls(state_url: str, environ: Mapping[str, str]) -> str:
    """Return the URL with `sslmode=verify-full`, unless the URL or `PGSSLMODE` sets a mode.

    By default, libpq doesn't check which server answers. URLs that name this machine get no mode.
    """
    parts = urlsplit(state_url)
    given = parse_qs(parts.query)
    host = given.get("host", [parts.hostname or ""])[0]
    chosen = given["sslmode"][0] if "sslmode" in given else environ.get("PGSSLMODE")
    added = {}
    if not chosen and not (host in _LOOPBACK or host.startswith("/")):
        chosen = added["sslmode"] = "verify-full"
    has_authorities = "sslrootcert" in given or environ.get("PGSSLROOTCERT")
    if chosen in {"verify-ca", "verify-full"} and not has_authorities:
        added["sslrootcert"] = environ[AUTHORITIES]
    return f"{state_url}{'&' if parts.query else '?'}{urlencode(added)}" if added else state_url


@contextmanager
def _needing_extra() -> Iterator[None]:
    """Raise StorageError if a library of the cluster is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        message = f"A cluster needs {error.name}, which is not installed. Run {install_command('cluster')}."
        raise StorageError(message) from error


@dataclass(frozen=True, slots=True)
class OpenCluster:
    """A cluster's engines, opened by a command instead of a daemon."""

    state: Database
    stores: ByteStores
    bytes: BytesInspector
    index: Inspector
    #: Counts the connected nodes.
    count_nodes: Callable[[], int]
    #: The mark of each other engine, and a function that calls another with that engine. It raises StorageError or
    #: ProviderError.
    marks: Sequence[tuple[EngineMark, Callable[[Callable[[MarkedEngine], Any]], Any]]]


@contextmanager
def open_cluster(
    cluster: ClusterSettings,
    environ: Mapping[str, str],
    staging: Path,
    prepare: Callable[[Connection], None] = check_shared_current,
) -> Iterator[OpenCluster]:
    """Open the engines for a command that may run while the cluster's daemons run. Raises StorageError.

    `staging` is a folder for bytes in transfer. `prepare` is called with a connection; by default, it only checks the
    schema.
    """
    with _needing_extra():
        from svc_daemon.cluster.milvus.inspecting import MilvusInspector  # noqa: PLC0415
        from svc_daemon.cluster.postgres.database import PostgresDatabase  # noqa: PLC0415
        from svc_daemon.cluster.postgres.sessions import count_nodes  # noqa: PLC0415
        from svc_daemon.cluster.s3.stores import ObjectInspector, open_objects  # noqa: PLC0415

    environ = {**environ, AUTHORITIES: _find_authorities(environ)}
    with ExitStack() as stack:
        state_url = checked_tls(cluster.state_url, environ)
        state = PostgresDatabase(state_url, prepare=prepare, join=join_shared)
        stack.callback(state.close)
        stores = open_objects(cluster.blobs_url, environ, staging, stack.enter_context(ThreadPoolExecutor(8)))
        server = _open_milvus_server(cluster, environ[AUTHORITIES], time.monotonic)
        stack.callback(server.close)
        index = MilvusInspector(server)
        marks = ((S3_MARK, stores.blobs.client.on_marks), (MILVUS_MARK, server.on_marks))
        yield OpenCluster(state, stores, ObjectInspector(stores), index, partial(count_nodes, state_url), marks)


def plan_shared_upgrade(cluster: ClusterSettings, environ: Mapping[str, str]) -> tuple[list[PendingMigration], int]:
    """List the migrations that the cluster's database needs, and count its connected nodes. Changes nothing.

    Raises StorageError, and NotFound if the database has no installation.
    """
    with _needing_extra():
        from svc_daemon.cluster.postgres.servers import PostgresServer  # noqa: PLC0415
        from svc_daemon.cluster.postgres.sessions import count_nodes  # noqa: PLC0415

    state_url = checked_tls(cluster.state_url, {**environ, AUTHORITIES: _find_authorities(environ)})
    with closing(PostgresServer(state_url).connect_first()) as connection:
        return list_pending_shared(connection), count_nodes(state_url)


def _open_milvus_server(cluster: ClusterSettings, authorities: str, clock: Callable[[], float]) -> "MilvusServer":
    from svc_daemon.cluster.milvus.server import MilvusServer  # noqa: PLC0415

    return MilvusServer(cluster.index_url, cluster.index_token, ca_file=authorities, clock=clock)
