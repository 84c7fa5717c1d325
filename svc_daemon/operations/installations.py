"""The first start of a data directory: an installation id, one team, and an admin key for this user. Nothing else."""

import os
import secrets
from collections.abc import Callable
from pathlib import Path
from sqlite3 import Connection

from svc_daemon.core import api_keys, ids
from svc_daemon.core.ids import Ids
from svc_daemon.core.times import Clock
from svc_daemon.database import Database
from svc_daemon.paths import DataFiles
from svc_daemon.store.blobs import sync_folder
from svc_daemon.store.facts import create_fact, find_fact
from svc_daemon.store.keys import Key, create_key
from svc_daemon.store.teams import create_team

INSTALLATION_ID = "installation_id"


def prepare_installation(
    files: DataFiles, database: Database, clock: Clock, make_ids: Ids, random: Callable[[int], bytes]
) -> str:
    """The installation's id; made at first start, with the team and the key in `admin.key`.

    The key's file is written before the commit: killed in between, the next start writes another key over it.
    """
    existing = database.read(lambda connection: find_fact(connection, INSTALLATION_ID))
    if existing is not None:
        return existing
    now = clock.timestamp()
    team_id, key_id, installation_id = (make_ids.make(kind) for kind in (ids.TEAM, ids.KEY, ids.INSTALLATION))
    text = api_keys.mint(key_id, random(32))
    write_secret(files.admin_key, text)
    key = _admin_key(team_id, key_id, text, now)

    def work(connection: Connection) -> None:
        create_team(connection, team_id, "default", now)
        create_key(connection, key)
        create_fact(connection, INSTALLATION_ID, installation_id)

    database.write(work)
    return installation_id


def prepare_secret(files: DataFiles, random: Callable[[int], bytes]) -> bytes:
    """The installation's 32 random bytes, made at first start."""
    if not files.secret.exists():
        write_secret(files.secret, random(32).hex())
    return bytes.fromhex(files.secret.read_text().strip())


def write_secret(path: Path, text: str) -> None:
    """Write a file that only this user can read, durably, all or nothing."""
    for leftover in path.parent.glob(f".{path.name}.*"):
        # A kill between writing and renaming: the secret in it must not lie about.
        leftover.unlink()
    staged = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())
    staged.replace(path)
    sync_folder(path.parent)


def _admin_key(team_id: str, key_id: str, text: str, now: str) -> Key:
    parts = api_keys.parse(text)
    if parts is None:
        raise AssertionError("a minted key is well-formed")
    return Key(
        id=key_id,
        team_id=team_id,
        name="admin",
        secret_hash=parts.secret_hash,
        capabilities=api_keys.PRESETS["admin"],
        created_at=now,
    )
