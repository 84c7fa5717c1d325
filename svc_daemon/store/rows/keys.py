"""API keys and their permissions, of which only a hash of the secret is stored, and the watchers that use them."""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from svc_daemon.core.access.api_keys import GRANTABLE
from svc_daemon.databases.contract import Connection, Row, values_of
from svc_daemon.errors import NotFound
from svc_daemon.store.columns import column_values, insertion, read_list, read_texts
from svc_daemon.wire.light.error_codes import ErrorCode
from svc_daemon.wire.services import WatchedMapping


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRow:
    """A stored API key: a hash of its secret, and what it may do."""

    id: str
    team_id: str
    name: str
    #: Hexadecimal SHA-256 of the secret.
    secret_hash: str
    capabilities: tuple[str, ...]
    #: Ids of the models that the key may use; None means all.
    models: tuple[str, ...] | None = None
    #: Ids of the buckets that the key may access; None means all.
    buckets: tuple[str, ...] | None = None
    expires_at: str | None = None
    revoked_at: str | None = None
    created_at: str
    #: The key with which this key of the console ends.
    parent_id: str | None = None

    @classmethod
    def from_row(cls, row: Row) -> "KeyRow":
        values = values_of(row)
        for name, is_grantable in GRANTABLE.items():
            # What permits nothing is left out, so that it can't hide the key from those who may revoke it.
            values[name] = None if values[name] is None else tuple(filter(is_grantable, read_texts(values[name])))
        return cls(**values)

    @property
    def is_limited(self) -> bool:
        """Whether the key may access only some of the team's buckets."""
        return self.buckets is not None

    def reachable(self, bucket_ids: Iterable[str]) -> list[str]:
        """Return which of the buckets the key may access. Responses must not mention the other buckets."""
        return [each for each in bucket_ids if self.buckets is None or each in self.buckets]

    def reaches(self, bucket_ids: Iterable[str]) -> bool:
        """Whether the key may access at least one of these buckets."""
        return self.buckets is None or bool(set(self.buckets).intersection(bucket_ids))

    def reaches_all(self, bucket_ids: Iterable[str]) -> bool:
        """Whether the key may access all of these buckets."""
        return self.buckets is None or set(self.buckets).issuperset(bucket_ids)

    def is_live(self, now: str) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


def create_key(connection: Connection, key: KeyRow) -> None:
    connection.execute(insertion(KeyRow, "keys"), column_values(key))


def find_key(connection: Connection, key_id: str) -> KeyRow | None:
    """Find a key by its id, in any team."""
    row = connection.execute("SELECT * FROM keys WHERE id = :id", {"id": key_id}).fetchone()
    return KeyRow.from_row(row) if row else None


def get_key(connection: Connection, team_id: str, key_id: str) -> KeyRow:
    key = find_key(connection, key_id)
    if key is None or key.team_id != team_id:
        raise NotFound(ErrorCode.KEY_NOT_FOUND, f"There is no key {key_id!r}.")
    return key


def list_keys(connection: Connection, team_id: str) -> list[KeyRow]:
    """List the team's keys, also revoked and expired ones, oldest first."""
    rows = connection.execute("SELECT * FROM keys WHERE team_id = :team_id ORDER BY id", {"team_id": team_id})
    return [KeyRow.from_row(row) for row in rows.fetchall()]


def revoke_key(connection: Connection, team_id: str, key_id: str, revoked_at: str) -> None:
    """Revoke a key and the keys of the console that end with it. Of one that was revoked before, the time is kept."""
    connection.execute(
        "WITH RECURSIVE ended (id) AS (SELECT CAST(:id AS TEXT) UNION SELECT k.id FROM keys k JOIN ended ON"
        " k.parent_id = ended.id) UPDATE keys SET revoked_at = :revoked_at WHERE team_id = :team_id"
        " AND revoked_at IS NULL AND id IN (SELECT id FROM ended)",
        {"team_id": team_id, "id": key_id, "revoked_at": revoked_at},
    )


def replace_secret(connection: Connection, key_id: str, used_hash: str, secret_hash: str, expires_at: str) -> bool:
    """Give a key another secret and expiry. Return False, without a change, if its secret is no longer `used_hash`."""
    changed = connection.execute(
        "UPDATE keys SET secret_hash = :secret_hash, expires_at = :expires_at WHERE id = :id AND secret_hash = :used"
        " RETURNING id",
        {"id": key_id, "used": used_hash, "secret_hash": secret_hash, "expires_at": expires_at},
    )
    return changed.fetchone() is not None


def forget_console_keys(connection: Connection, team_id: str, now: str) -> None:
    """Delete the team's keys of the console that have expired, and that no stored response or other key refers to."""
    connection.execute(
        "DELETE FROM keys WHERE team_id = :team_id AND parent_id IS NOT NULL AND expires_at <= :now"
        " AND NOT EXISTS (SELECT 1 FROM idempotency i WHERE i.key_id = keys.id)"
        " AND NOT EXISTS (SELECT 1 FROM keys child WHERE child.parent_id = keys.id)",
        {"team_id": team_id, "now": now},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WatcherRow:
    """What a watcher of folders last reported with its key."""

    id: str
    team_id: str
    key_id: str
    mappings: list[WatchedMapping]
    reported_at: str


def put_watcher(connection: Connection, watcher: WatcherRow) -> None:
    """Store the watcher's report in place of its last one."""
    connection.execute(
        "INSERT INTO watchers (team_id, key_id, id, mappings, reported_at)"
        " VALUES (:team_id, :key_id, :id, :mappings, :reported_at)"
        " ON CONFLICT (key_id, id) DO UPDATE SET mappings = excluded.mappings, reported_at = excluded.reported_at",
        {**column_values(watcher), "mappings": json.dumps(watcher.mappings)},
    )


def list_watchers(connection: Connection, team_id: str, since: str) -> list[WatcherRow]:
    """List the team's watchers that have reported since then, by id."""
    rows = connection.execute(
        "SELECT * FROM watchers WHERE team_id = :team_id AND reported_at > :since ORDER BY id, key_id",
        {"team_id": team_id, "since": since},
    ).fetchall()
    return [WatcherRow(**{**values_of(row), "mappings": read_list(row["mappings"], "mappings")}) for row in rows]


def forget_watchers(connection: Connection, since: str) -> int:
    """Delete the watchers of all teams that have not reported since then. Returns how many."""
    return connection.execute("DELETE FROM watchers WHERE reported_at <= :since", {"since": since}).rowcount
