"""Prepares an installation at the daemon's first start, and marks a state that was restored."""

import logging
import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from svc_daemon.core import ids
from svc_daemon.core.access import api_keys
from svc_daemon.core.access.api_keys import Grant
from svc_daemon.core.ids import Ids
from svc_daemon.core.problems import Problem
from svc_daemon.core.times import to_text
from svc_daemon.data_directory import OpenFolder, has_state, list_own
from svc_daemon.databases.contract import Connection, Database
from svc_daemon.errors import StorageError
from svc_daemon.operations.keys import mint_key
from svc_daemon.paths import DataFiles, sync_folder
from svc_daemon.store.checks import list_blob_rows
from svc_daemon.store.files.staging import clear_away
from svc_daemon.store.migrations import MIGRATIONS, list_copies
from svc_daemon.store.rows.buckets import raise_revisions
from svc_daemon.store.rows.keys import create_key, find_key
from svc_daemon.store.rows.moves import find_arrival, find_departure
from svc_daemon.store.rows.teams import create_team, find_fact, keep_fact, put_fact
from svc_daemon.wire.keys import RestoreMark
from svc_daemon.wire.light.error_codes import SourceErrorCode
from svc_daemon.wire.light.local_daemons import SECRET_BYTES, parse_secret

log = logging.getLogger(__name__)

INSTALLATION_ID = "installation_id"
#: Number of sources that are looked at to find one that should have a stored file.
PAGE_ROWS = 1000
#: Row of the table `facts`: the secret that a cluster's nodes share.
SHARED_SECRET = "secret"  # noqa: S105 - a name
#: Row of the table `facts`: the newest database schema with which a daemon has run and stopped normally.
SERVED_SCHEMA = "served_schema"


def prepare_installation(files: DataFiles, database: Database, make_ids: Ids) -> str:
    """Return the installation's id. The first start creates the id, a team, and an admin key in the file `admin.key`.

    Raises StorageError if the database is lost but stored files remain, or if the installation was moved.
    """
    database.read(refuse_moved)
    existing = database.read(partial(find_fact, name=INSTALLATION_ID))
    if existing is not None:
        return existing
    _refuse_stored_files(files)
    team_id, installation_id = make_ids.make(ids.TEAM), make_ids.make(ids.INSTALLATION)
    minted = mint_key(make_ids, team_id, "admin", Grant(capabilities=api_keys.PRESETS["admin"]))
    write_secret(files.admin_key, minted.text)

    def work(connection: Connection) -> str:
        refuse_moved(connection)
        kept = keep_fact(connection, INSTALLATION_ID, installation_id)
        if kept == installation_id:
            create_team(connection, team_id, "default", to_text(make_ids.now()))
            create_key(connection, minted.key)
        return kept

    kept = database.write(work)
    if kept != installation_id:
        # Another node created the installation first, and only that node's key is valid.
        clear_away(files.admin_key)
    return kept


def refuse_moved(connection: Connection) -> None:
    """Raise StorageError if this installation was moved away, or its move to this place is incomplete."""
    if find_arrival(connection) is not None:
        raise StorageError(
            "This is a part of an installation that is being moved here. Run the same `svc-daemon move` again, which"
            " continues it."
        )
    departure = find_departure(connection)
    if departure is not None:
        way = "was moved" if departure.is_done else "is being moved"
        raise StorageError(
            f"This installation {way} to {departure.to} ({departure.began_at}), and must not be changed here. To use it"
            " here all the same, run the same `svc-daemon move` with --cancel."
        )


def refuse_lost_state(files: DataFiles) -> None:
    """Raise StorageError if a restore was interrupted, or if stored files have no database."""
    if files.restoring.exists():
        raise StorageError(
            f"A restore into {files.root} was interrupted. Run `svc-daemon restore` again, which continues it, or"
            f" remove {files.restoring}."
        )
    if not has_state(files):
        _refuse_stored_files(files)


def _refuse_stored_files(files: DataFiles) -> None:
    """Raise StorageError if files are stored, because a new database would have no rows for them."""
    stored = list_own(files.blobs, ids.BLOB_NAME) if files.blobs.is_dir() else []
    if stored:
        raise StorageError(
            f"{files.state} is missing, empty or new, and {files.blobs} has {len(stored)} stored files; nothing was"
            f" changed. Restore a copy of {files.state.name}, even an old one, and remove {files.state.name}-wal and"
            f" {files.state.name}-shm; `svc-daemon verify --repair` then recovers files that it lacks. Or, to start"
            f" with no data, move {files.blobs.name} away."
        )


def _refuse_lost_bytes(files: DataFiles, database: Database) -> None:
    """Raise StorageError if several sources should have stored files: without them, they would fail one by one.

    A single lost file is what is said of its source.
    """
    rows = database.read(partial(list_blob_rows, after_id="", limit=PAGE_ROWS))
    if sum(SourceErrorCode.STORED_BYTES_LOST not in (row.error or "") for row in rows) > 1:
        raise StorageError(
            f"{files.blobs} is empty, but sources have their bytes there; nothing was changed. Is a volume not mounted?"
            " Mount it, or restore a backup. Or, to start without these bytes, put an empty file into the folder."
        )


@contextmanager
def serving_installation(files: DataFiles, database: Database, make_ids: Ids) -> Iterator[str]:
    """Yield the installation's id while a daemon serves it; raises the errors of `prepare_installation`.

    An upgrade keeps a copy of the older state database. Once a daemon has run with the new schema and ended without an
    error, the next start removes the copy.
    """
    installation_id = prepare_installation(files, database, make_ids)
    # A cluster's node has neither state nor bytes in its data directory.
    if has_state(files) and not any(files.blobs.iterdir()) and not any(files.aside.rglob("*")):
        _refuse_lost_bytes(files, database)
    newest, copies = next(reversed(MIGRATIONS)), list_copies(files.state)
    if copies and database.read(partial(find_fact, name=SERVED_SCHEMA)) == newest:
        for copy in copies:
            clear_away(copy)
        log.info("the state from before the upgrade is removed: %s", ", ".join(copy.name for copy in copies))
    yield installation_id
    if list_copies(files.state) and not database.is_broken:
        database.write(partial(put_fact, name=SERVED_SCHEMA, value=newest))


def prepare_secret(files: DataFiles, random: Callable[[int], bytes]) -> bytes:
    """Return the installation's secret, which the first start creates. Raises StorageError if the file is damaged.

    A damaged secret is not replaced, because receivers of webhooks depend on the secret.
    """
    if not files.secret.exists():
        write_secret(files.secret, random(SECRET_BYTES).hex())
    secret = parse_secret(files.secret.read_text(errors="replace"))
    if secret is None:
        raise StorageError(
            f"{files.secret} is damaged. Put it back from a copy; or delete it, and the next start makes another: "
            "webhooks are signed with new secrets then, and open upload URLs end."
        )
    return secret


def check_secret(files: DataFiles) -> list[Problem]:
    """Report if the file with the installation's secret is missing or damaged."""
    with suppress(OSError, UnicodeDecodeError), OpenFolder(files.root) as folder:
        if parse_secret(folder.read_text(files.secret.name)) is not None:
            return []
    message = "the secret of the installation is missing or damaged: webhooks get other secrets, and upload URLs end"
    return [Problem("secret", message)]


def check_admin_key(files: DataFiles, state: Connection) -> list[Problem]:
    """Report a file with the admin key that isn't a key of this state, such as a link to a file of others."""
    with OpenFolder(files.root) as folder:
        if folder.stat(files.admin_key.name) is None:
            return []
        with suppress(OSError, UnicodeDecodeError):
            parts = api_keys.parse(folder.read_text(files.admin_key.name).strip())
            key = find_key(state, parts.key_id) if parts else None
            if parts is not None and key is not None and api_keys.matches(key.secret_hash, parts):
                return []
    hint = "`svc-daemon key create --save` makes another"
    return [Problem("admin_key", f"{files.admin_key.name} is no file with a key of this installation: {hint}")]


def prepare_shared_secret(database: Database, random: Callable[[int], bytes]) -> bytes:
    """Return the secret that a cluster's nodes share. The first node creates it."""
    made = random(SECRET_BYTES).hex()
    kept = database.write(lambda connection: keep_fact(connection, SHARED_SECRET, made))
    secret = parse_secret(kept)
    if secret is None:
        raise StorageError(
            "The secret in the database is damaged. Put it back from a copy; or delete its row in `facts`, and the next"
            " start makes another: webhooks are signed with new secrets then, and open upload URLs end."
        )
    return secret


def prepare_operator_token(files: DataFiles, random: Callable[[int], bytes]) -> str:
    """Write a new token for the routes below `/admin`, valid until the service stops.

    Anyone who can read the token's file can use the token.
    """
    token = random(32).hex()
    write_secret(files.operator_token, token)
    return token


def write_secret(path: Path, text: str) -> None:
    """Write a file that only this user can read, atomically and durably."""
    for leftover in list_own(path.parent, re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{8}}")):
        # A killed process left this file, which contains a secret.
        (path.parent / leftover).unlink(missing_ok=True)
    staged = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())
    staged.replace(path)
    sync_folder(path.parent)


#: The name under which the table `facts` has the time of the last restore.
RESTORED_AT = "restored_at"
#: A restore sets revisions to the Unix time in seconds, shifted left by this many bits, so that they only increase.
REVISION_BITS = 20


def mark_restored(connection: Connection, make_ids: Ids) -> RestoreMark:
    """Record that the state was restored, and raise the revisions of all buckets."""
    now = make_ids.now()
    # Add random bits: if the clock is set back, two restores can happen at the same clock time.
    part = int.from_bytes(make_ids.random(4), "big") >> (32 - REVISION_BITS)
    revision = (int(now.timestamp()) << REVISION_BITS) + part
    raise_revisions(connection, revision)
    put_fact(connection, RESTORED_AT, to_text(now))
    return RestoreMark(object="restore_mark", restored_at=to_text(now), revision=revision)
