"""Detachments and facts: small notes, each once."""

import sqlite3
from sqlite3 import Connection

import pytest

from svc_daemon.store.facts import create_fact, find_fact
from svc_daemon.store.tombstones import create_detachment, delete_detachment, list_detachments
from tests.store.rows import OURS, THEIRS


def test_a_detachment_is_noted_once_until_it_is_done(db: Connection) -> None:
    for team_id, source_id in ((OURS, "src_2"), (THEIRS, "src_1"), (OURS, "src_2"), (OURS, "src_3")):
        create_detachment(db, team_id, source_id)
    first = [(noted.source_id, noted.team_id) for noted in list_detachments(db, limit=2)]
    assert first == [("src_1", THEIRS), ("src_2", OURS)]
    assert [noted.source_id for noted in list_detachments(db, after="src_2", limit=2)] == ["src_3"]
    delete_detachment(db, "src_1")
    delete_detachment(db, "src_1")
    assert [noted.source_id for noted in list_detachments(db, limit=10)] == ["src_2", "src_3"]


def test_a_fact_is_written_once(db: Connection) -> None:
    assert find_fact(db, "installation_id") is None
    create_fact(db, "installation_id", "ins_1")
    with pytest.raises(sqlite3.IntegrityError):
        create_fact(db, "installation_id", "ins_2")
    assert find_fact(db, "installation_id") == "ins_1"
