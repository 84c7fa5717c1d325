"""Tombstones: what is still to be cleaned, and who took whose place however long the line."""

from itertools import pairwise
from sqlite3 import Connection

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from svc_daemon.store.tombstones import create_tombstone, find_successor, finish_tombstone, list_to_clean
from tests.store.rows import LATER, NOW, OURS, THEIRS, add_source, table, undone


def _line(db: Connection, names: list[str]) -> None:
    """Each name was replaced by the next; the last one is not touched."""
    for old, new in pairwise(names):
        create_tombstone(db, OURS, f"src_{old}", f"src_{new}", NOW)


def test_the_successor_is_the_one_that_is_there_now(db: Connection) -> None:
    _line(db, ["1", "2", "3"])
    add_source(db, "3")
    assert [find_successor(db, OURS, f"src_{name}") for name in "123"] == ["src_3", "src_3", None]
    assert find_successor(db, THEIRS, "src_1") is None


def test_a_line_without_a_living_end_has_no_successor(db: Connection) -> None:
    _line(db, ["1", "2", "3"])
    create_tombstone(db, OURS, "src_3", None, NOW)
    _line(db, ["4", "5", "4"])
    for name in ("1", "3", "4", "never"):
        assert find_successor(db, OURS, f"src_{name}") is None, name
    finish_tombstone(db, "src_3", LATER)
    assert find_successor(db, OURS, "src_1") is None


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(min_value=1, max_value=12), min_size=1, max_size=5), st.booleans())
def test_every_member_of_every_line_leads_to_its_living_end(db: Connection, lengths: list[int], cleaned: bool) -> None:
    with undone(db):
        for line, length in enumerate(lengths):
            names = [f"{line}_{position}" for position in range(length + 1)]
            _line(db, names)
            add_source(db, names[-1])
            for name in names[:-1]:
                if cleaned:
                    finish_tombstone(db, f"src_{name}", LATER)
                assert find_successor(db, OURS, f"src_{name}") == f"src_{names[-1]}"


def test_what_is_to_be_cleaned_is_listed_with_its_bytes_until_it_is_done(db: Connection) -> None:
    create_tombstone(db, OURS, "src_2", None, NOW)
    create_tombstone(db, THEIRS, "src_1", "src_9", NOW)
    create_tombstone(db, OURS, "src_3", None, NOW, "blob_7")
    stones = [(stone.source_id, stone.team_id, stone.blob_name) for stone in list_to_clean(db, limit=2)]
    assert stones == [("src_1", THEIRS, "src_1"), ("src_2", OURS, "src_2")]
    assert [stone.blob_name for stone in list_to_clean(db, after="src_2", limit=10)] == ["blob_7"]
    for name in ("src_1", "src_2", "src_2"):
        finish_tombstone(db, name, LATER)
    assert [stone.source_id for stone in list_to_clean(db, limit=10)] == ["src_3"]
    # A cleaned stone stays only to name the successor.
    rows = [(row["source_id"], row["cleaned_at"]) for row in table(db, "tombstones")]
    assert rows == [("src_1", LATER), ("src_3", None)]
