"""Tests when an API key is valid, and the stored responses of its idempotency keys."""

import sqlite3

import pytest

from svc_daemon.databases.contract import Connection
from svc_daemon.store.rows.idempotency import StoredAnswer, create_answer, delete_expired_answers, find_answer
from tests.store.rows import LATER, NOW, OURS, THEIRS, make_key, table


def test_a_key_is_invalid_from_the_moment_of_its_expiry() -> None:
    assert [make_key(expires_at=at).is_live(NOW) for at in (NOW, LATER)] == [False, True]


OUR_KEY, THEIR_KEY = f"key_{OURS}", f"key_{THEIRS}"
ANSWER = StoredAnswer(route="POST /a", fingerprint="f", body={"id": "src_1", "ü": [1, None, {"b": True}]})
OTHER = StoredAnswer(route="POST /b", fingerprint=None, body={})


def create(db: Connection, key_id: str, key: str, answer: StoredAnswer, created_at: str) -> bool:
    """Store a response; a response of the same key from before "2" is replaced."""
    return create_answer(db, key_id, key, answer, created_at=created_at, oldest="2")


def test_a_stored_response_is_found_only_by_its_api_key_and_exact_key(db: Connection) -> None:
    create(db, OUR_KEY, "Key!~", ANSWER, "2")
    for key_id, key in ((THEIR_KEY, "Key!~"), (OUR_KEY, "key!~"), (OUR_KEY, "Key!~ "), (OUR_KEY, "%")):
        assert find_answer(db, key_id, key, "1") is None, (key_id, key)
    create(db, THEIR_KEY, "Key!~", OTHER, "2")
    assert (find_answer(db, OUR_KEY, "Key!~", "1"), find_answer(db, THEIR_KEY, "Key!~", "1")) == (ANSWER, OTHER)
    if isinstance(db, sqlite3.Connection):
        # PostgreSQL doesn't check references.
        with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
            create(db, "key_none", "k", ANSWER, "1")


def test_only_an_expired_response_is_replaced(db: Connection) -> None:
    tries = ((ANSWER, "1"), (OTHER, "3"), (ANSWER, "5"))
    assert [create(db, OUR_KEY, "k", answer, at) for answer, at in tries] == [True, True, False]
    assert [find_answer(db, OUR_KEY, "k", oldest) for oldest in "34"] == [OTHER, None]
    assert (len(table(db, "idempotency")), [delete_expired_answers(db, oldest) for oldest in "34"]) == (1, [0, 1])
