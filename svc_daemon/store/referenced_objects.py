"""Finds out which stored objects have a row in the database. The sweeper deletes old objects that have none."""

import json
from collections.abc import Collection

from svc_daemon.core import ids
from svc_daemon.databases.contract import Connection


def list_named_blobs(connection: Connection, names: Collection[str]) -> set[str]:
    """Return the names that sources have. Names without a source id are returned too, since they can't be looked up."""
    source_ids = {name: ids.source_of(name) for name in names}
    rows = connection.execute(
        "SELECT COALESCE(blob, id) AS name FROM sources WHERE id IN (SELECT value FROM json_each(:ids))",
        {"ids": json.dumps(sorted(filter(None, source_ids.values())))},
    ).fetchall()
    return {row["name"] for row in rows} | {name for name, source_id in source_ids.items() if source_id is None}


def list_open_sessions(connection: Connection, session_ids: Collection[str]) -> set[str]:
    """Return which of the upload sessions are open."""
    rows = connection.execute(
        "SELECT id FROM uploads WHERE status = 'open' AND id IN (SELECT value FROM json_each(:ids))",
        {"ids": json.dumps(sorted(session_ids))},
    ).fetchall()
    return {row["id"] for row in rows}
