"""How much of its rate limits each team has used, shared by all nodes. PostgreSQL only.

The table is unlogged: a crash of the database server resets the counts to zero.
"""

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from svc_daemon.databases.contract import Connection, Row
from svc_daemon.wire.light.parsing import parse_json

SCHEMA = """\
CREATE UNLOGGED TABLE IF NOT EXISTS rates (
  team_id TEXT PRIMARY KEY,
  tokens DOUBLE PRECISION NOT NULL,
  updated_s DOUBLE PRECISION NOT NULL,
  charges TEXT NOT NULL
)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RateRow:
    """A team's use of its rate limits. Times are in seconds of the server's clock."""

    team_id: str
    tokens: float = 0.0
    #: When `tokens` was computed; 0 means that the token bucket is full.
    updated_s: float = 0.0
    #: Times and sizes of uploads in the last minute, oldest first.
    charges: tuple[tuple[float, int], ...] = ()


def create_rates(connection: Connection, team_ids: Collection[str]) -> None:
    """Create rows for teams that have none."""
    connection.execute(
        "INSERT INTO rates (team_id, tokens, updated_s, charges)"
        # Sorted, so that two transactions can't deadlock.
        " SELECT value, 0, 0, '[]' FROM json_each(:team_ids) ORDER BY value ON CONFLICT (team_id) DO NOTHING",
        {"team_ids": json.dumps(sorted(team_ids))},
    )


def lock_rates(connection: Connection, team_ids: Collection[str]) -> dict[str, RateRow]:
    """Return the teams' rows, locked until the transaction ends."""
    rows = connection.execute(
        "SELECT * FROM rates WHERE team_id IN (SELECT value FROM json_each(:team_ids)) ORDER BY team_id FOR UPDATE",
        {"team_ids": json.dumps(sorted(team_ids))},
    ).fetchall()
    return {row["team_id"]: _from_row(row) for row in rows}


def find_rate(connection: Connection, team_id: str) -> RateRow | None:
    row = connection.execute("SELECT * FROM rates WHERE team_id = :team_id", {"team_id": team_id}).fetchone()
    return _from_row(row) if row else None


def update_rates(connection: Connection, rates: Iterable[RateRow]) -> None:
    connection.executemany(
        "UPDATE rates SET tokens = :tokens, updated_s = :updated_s, charges = :charges WHERE team_id = :team_id",
        [
            {
                "team_id": rate.team_id,
                "tokens": rate.tokens,
                "updated_s": rate.updated_s,
                "charges": json.dumps(rate.charges),
            }
            for rate in rates
        ],
    )


def read_clock(connection: Connection) -> float:
    """Return the server's time, in seconds since 1970."""
    row = connection.execute(
        "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS DOUBLE PRECISION) AS now_s"
    ).fetchone()
    return float(row["now_s"])


def _from_row(row: Row) -> RateRow:
    charges = tuple((at_s, size_bytes) for at_s, size_bytes in parse_json(row["charges"]))
    return RateRow(team_id=row["team_id"], tokens=row["tokens"], updated_s=row["updated_s"], charges=charges)
