"""Idempotency keys with the responses to their requests. A repeated request gets the stored response again."""

import json
from dataclasses import dataclass

from svc_daemon.databases.contract import Connection
from svc_daemon.wire import JsonMapping
from svc_daemon.wire.light.parsing import parse_json


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAnswer:
    """A finished request with an idempotency key, and its response."""

    #: Method and path template.
    route: str
    fingerprint: str | None
    #: The JSON body, without `request_id` and secrets.
    body: JsonMapping


def find_answer(connection: Connection, key_id: str, key: str, oldest: str) -> StoredAnswer | None:
    """Return the stored response; None if no response was stored at `oldest` or later."""
    row = connection.execute(
        "SELECT route, fingerprint, answer FROM idempotency"
        " WHERE key_id = :key_id AND key = :key AND created_at >= :oldest",
        {"key_id": key_id, "key": key, "oldest": oldest},
    ).fetchone()
    if row is None:
        return None
    return StoredAnswer(route=row["route"], fingerprint=row["fingerprint"], body=parse_json(row["answer"]))


def create_answer(
    connection: Connection, key_id: str, key: str, answer: StoredAnswer, *, created_at: str, oldest: str
) -> bool:
    """Store the response. Returns False if a response was already stored at `oldest` or later."""
    cursor = connection.execute(
        "INSERT INTO idempotency (key_id, key, route, fingerprint, answer, created_at)"
        " VALUES (:key_id, :key, :route, :fingerprint, :answer, :created_at)"
        " ON CONFLICT (key_id, key) DO UPDATE SET route = excluded.route, fingerprint = excluded.fingerprint,"
        " answer = excluded.answer, created_at = excluded.created_at WHERE idempotency.created_at < :oldest",
        {
            "key_id": key_id,
            "key": key,
            "route": answer.route,
            "fingerprint": answer.fingerprint,
            "answer": json.dumps(answer.body),
            "created_at": created_at,
            "oldest": oldest,
        },
    )
    return cursor.rowcount == 1


def delete_expired_answers(connection: Connection, oldest: str) -> int:
    cursor = connection.execute("DELETE FROM idempotency WHERE created_at < :oldest", {"oldest": oldest})
    return cursor.rowcount
