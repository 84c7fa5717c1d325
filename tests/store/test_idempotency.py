"""Stored answers: one a key, read back whole, given way to when old, forgotten in time."""

import sqlite3
from sqlite3 import Connection

import pytest

from svc_daemon.core.uploads.idempotency import Claim
from svc_daemon.store.idempotency import StoredAnswer, create_answer, delete_expired_answers, find_answer
from tests.store.rows import OURS, THEIRS, plan, table

OUR_KEY, THEIR_KEY = f"key_{OURS}", f"key_{THEIRS}"
ANSWER = StoredAnswer(claim=Claim(route="POST /a", fingerprint="f"), body={"id": "src_1", "ü": [1, None, {"b": True}]})
#: Rows from before this give way.
OLDEST = "2"
OTHER = StoredAnswer(claim=Claim(route="POST /b", fingerprint=None), body={})


def test_an_answer_reads_back_as_it_was_given(connection: Connection) -> None:
    create_answer(connection, OUR_KEY, "!~", ANSWER, created_at="2", oldest=OLDEST)
    create_answer(connection, OUR_KEY, "other", OTHER, created_at="2", oldest=OLDEST)
    assert find_answer(connection, OUR_KEY, "!~", "1") == ANSWER
    assert find_answer(connection, OUR_KEY, "other", "1") == OTHER


def test_a_key_belongs_to_its_api_key_and_to_its_letters(connection: Connection) -> None:
    create_answer(connection, OUR_KEY, "Key", ANSWER, created_at="2", oldest=OLDEST)
    for key_id, key in ((THEIR_KEY, "Key"), (OUR_KEY, "key"), (OUR_KEY, "Key "), (OUR_KEY, "%")):
        assert find_answer(connection, key_id, key, "1") is None
    create_answer(connection, THEIR_KEY, "Key", OTHER, created_at="2", oldest=OLDEST)
    assert find_answer(connection, OUR_KEY, "Key", "1") == ANSWER


@pytest.mark.parametrize(("oldest", "is_found"), [("1", True), ("2", True), ("3", False)])
def test_an_answer_counts_for_its_time(connection: Connection, oldest: str, is_found: bool) -> None:
    create_answer(connection, OUR_KEY, "k", ANSWER, created_at="2", oldest=OLDEST)
    assert (find_answer(connection, OUR_KEY, "k", oldest) is not None) is is_found


def test_an_old_answer_gives_way_to_a_new_one(connection: Connection) -> None:
    create_answer(connection, OUR_KEY, "k", ANSWER, created_at="1", oldest=OLDEST)
    assert create_answer(connection, OUR_KEY, "k", OTHER, created_at="5", oldest=OLDEST)
    assert find_answer(connection, OUR_KEY, "k", "5") == OTHER
    assert len(table(connection, "idempotency")) == 1


def test_a_live_answer_is_never_overwritten(connection: Connection) -> None:
    assert create_answer(connection, OUR_KEY, "k", ANSWER, created_at="3", oldest=OLDEST)
    assert not create_answer(connection, OUR_KEY, "k", OTHER, created_at="5", oldest=OLDEST)
    assert find_answer(connection, OUR_KEY, "k", "3") == ANSWER


def test_only_what_is_older_is_forgotten(connection: Connection) -> None:
    for key, created_at in (("a", "1"), ("b", "2"), ("c", "3")):
        create_answer(connection, OUR_KEY, key, ANSWER, created_at=created_at, oldest=OLDEST)
    assert delete_expired_answers(connection, "2") == 1
    assert delete_expired_answers(connection, "2") == 0
    assert [row["key"] for row in table(connection, "idempotency")] == ["b", "c"]


def test_an_answer_needs_a_key_that_exists(connection: Connection) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        create_answer(connection, "key_none", "k", ANSWER, created_at="1", oldest=OLDEST)


def test_answers_are_found_and_forgotten_through_their_indexes(connection: Connection) -> None:
    assert "PRIMARY KEY (key_id=? AND key=?)" in plan(connection, lambda: find_answer(connection, OUR_KEY, "k", "1"))
    assert "idempotency_by_age" in plan(connection, lambda: delete_expired_answers(connection, "1"))
