"""Tombstones lead to the last successor of a replaced source, and detachments wait for changes of the title."""

from itertools import pairwise
from math import inf

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from svc_daemon.databases.contract import Connection
from svc_daemon.store.tombstones import (
    begin_retitle,
    create_tombstone,
    delete_detachment,
    end_retitle,
    end_retitles,
    find_successor,
    finish_tombstone,
    has_expired_retitles,
    list_detachments,
)
from tests.store.rows import LATER, NOW, OURS, THEIRS, add_source, undone


def _line(db: Connection, names: list[str]) -> None:
    """Create tombstones that say that each name was replaced by the next."""
    for old, new in pairwise(names):
        create_tombstone(db, OURS, f"src_{old}", f"src_{new}", NOW)


def test_chain_of_replacements_without_an_existing_end_has_no_successor(db: Connection) -> None:
    _line(db, ["1", "2", "3"])
    create_tombstone(db, OURS, "src_3", None, NOW)
    _line(db, ["4", "5", "4"])
    for name in ("1", "3", "4", "never"):
        assert find_successor(db, OURS, f"src_{name}") is None, name
    finish_tombstone(db, "src_3", LATER)
    assert find_successor(db, OURS, "src_1") is None


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.integers(min_value=1, max_value=12), min_size=1, max_size=5), st.booleans())
def test_every_replaced_source_leads_to_the_existing_end_of_its_chain(
    db: Connection, lengths: list[int], cleaned: bool
) -> None:
    with undone(db):
        for line, length in enumerate(lengths):
            names = [f"{line}_{position}" for position in range(length + 1)]
            _line(db, names)
            add_source(db, names[-1])
            for name in names[:-1]:
                if cleaned:
                    finish_tombstone(db, f"src_{name}", LATER)
                found = [find_successor(db, team_id, f"src_{name}") for team_id in (OURS, THEIRS)]
                assert found == [f"src_{names[-1]}", None]


def test_detachment_waits_until_every_change_of_the_title_has_ended_or_expired(db: Connection) -> None:
    def free(now_s: float) -> list[str]:
        return [each.source_id for each in list_detachments(db, now_s=now_s, limit=9)]

    begin_retitle(db, OURS, "src_1", now_s=0, lease_until_s=30)
    begin_retitle(db, OURS, "src_1", now_s=5, lease_until_s=35)
    end_retitle(db, "src_1")
    delete_detachment(db, "src_1", now_s=34)
    assert (free(34), free(35), has_expired_retitles(db, 34), has_expired_retitles(db, 35)) == (
        [],
        ["src_1"],
        False,
        True,
    )
    # The second change's process died and its lease has expired, so only a later change counts.
    begin_retitle(db, OURS, "src_1", now_s=40, lease_until_s=70)
    assert free(41) == []
    end_retitle(db, "src_1")
    assert free(41) == ["src_1"]
    begin_retitle(db, OURS, "src_1", now_s=50, lease_until_s=1e9)
    end_retitles(db, inf)
    assert free(51) == ["src_1"]
    delete_detachment(db, "src_1", now_s=51)
    end_retitle(db, "src_1")
    assert free(51) == []
