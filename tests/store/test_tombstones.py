"""Tombstones: what is still to be cleaned, and who took whose place however long the line."""

from itertools import pairwise
from pathlib import Path
from sqlite3 import Connection
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from svc_daemon.database import open_connection
from svc_daemon.store.migrations import migrate
from svc_daemon.store.tombstones import create_tombstone, find_successor, finish_tombstone, list_to_clean
from tests.store.rows import LATER, NOW, OURS, THEIRS, add_source, add_teams, plan, table


def _line(connection: Connection, names: list[str]) -> None:
    """Each name was replaced by the next; the last one is not touched."""
    for old, new in pairwise(names):
        create_tombstone(connection, OURS, f"src_{old}", f"src_{new}", NOW)


def test_a_deleted_source_has_no_successor(connection: Connection) -> None:
    create_tombstone(connection, OURS, "src_1", None, NOW)
    assert find_successor(connection, OURS, "src_1") is None
    assert find_successor(connection, OURS, "src_never") is None


def test_the_successor_is_the_one_that_is_there_now(connection: Connection) -> None:
    _line(connection, ["1", "2", "3"])
    add_source(connection, "3")
    assert find_successor(connection, OURS, "src_1") == "src_3"
    assert find_successor(connection, OURS, "src_2") == "src_3"
    assert find_successor(connection, OURS, "src_3") is None


def test_a_line_whose_end_was_deleted_has_no_successor(connection: Connection) -> None:
    _line(connection, ["1", "2", "3"])
    create_tombstone(connection, OURS, "src_3", None, NOW)
    assert find_successor(connection, OURS, "src_1") is None
    finish_tombstone(connection, "src_3", LATER)
    assert find_successor(connection, OURS, "src_1") is None


def test_another_team_learns_nothing_of_a_line(connection: Connection) -> None:
    _line(connection, ["1", "2"])
    add_source(connection, "2")
    assert find_successor(connection, THEIRS, "src_1") is None


def test_a_line_that_bites_its_tail_ends(connection: Connection) -> None:
    _line(connection, ["1", "2", "1"])
    assert find_successor(connection, OURS, "src_1") is None


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(min_value=1, max_value=12), min_size=1, max_size=5), st.booleans())
def test_every_member_of_every_line_leads_to_its_living_end(lengths: list[int], cleaned: bool) -> None:
    with TemporaryDirectory() as folder:
        connection = open_connection(Path(folder) / "state.db")
        migrate(connection)
        add_teams(connection)
        for line, length in enumerate(lengths):
            names = [f"{line}_{position}" for position in range(length + 1)]
            _line(connection, names)
            add_source(connection, names[-1])
            for name in names[:-1]:
                if cleaned:
                    finish_tombstone(connection, f"src_{name}", LATER)
                assert find_successor(connection, OURS, f"src_{name}") == f"src_{names[-1]}"
        connection.close()


def test_what_is_to_be_cleaned_is_listed_until_it_is_done(connection: Connection) -> None:
    create_tombstone(connection, OURS, "src_2", None, NOW)
    create_tombstone(connection, THEIRS, "src_1", "src_9", NOW)
    create_tombstone(connection, OURS, "src_3", None, NOW)
    assert [(stone.source_id, stone.team_id) for stone in list_to_clean(connection, limit=2)] == [
        ("src_1", THEIRS),
        ("src_2", OURS),
    ]
    assert [stone.source_id for stone in list_to_clean(connection, after="src_2", limit=10)] == ["src_3"]
    finish_tombstone(connection, "src_1", LATER)
    finish_tombstone(connection, "src_2", LATER)
    finish_tombstone(connection, "src_2", LATER)
    assert [stone.source_id for stone in list_to_clean(connection, limit=10)] == ["src_3"]


def test_a_cleaned_stone_stays_only_to_name_the_successor(connection: Connection) -> None:
    create_tombstone(connection, OURS, "src_1", None, NOW)
    create_tombstone(connection, OURS, "src_2", "src_9", NOW)
    for source_id in ("src_1", "src_2"):
        finish_tombstone(connection, source_id, LATER)
    assert [(row["source_id"], row["cleaned_at"]) for row in table(connection, "tombstones")] == [("src_2", LATER)]


def test_stones_are_found_through_their_indexes(connection: Connection) -> None:
    assert "tombstones_to_clean" in plan(connection, lambda: list_to_clean(connection, after="src_1", limit=100))
    following = plan(connection, lambda: find_successor(connection, OURS, "src_1"))
    assert "SEARCH t USING PRIMARY KEY" in following
    assert "SCAN t" not in following


def test_a_stone_knows_the_name_of_the_bytes(connection: Connection) -> None:
    create_tombstone(connection, OURS, "src_1", None, NOW)
    create_tombstone(connection, OURS, "src_2", None, NOW, "blob_7")
    assert [stone.blob_name for stone in list_to_clean(connection, limit=10)] == ["src_1", "blob_7"]
