"""Tests tombstones and their successors, pending detachments, and the webhook deliveries that are due."""

from itertools import pairwise
from math import inf
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from svc_daemon.databases.contract import Connection
from svc_daemon.store.rows import webhook_deliveries
from svc_daemon.store.rows.overdue_work import has_overlooked
from svc_daemon.store.rows.sources.detachments import (
    begin_retitle,
    delete_detachment,
    end_retitle,
    end_retitles,
    has_expired_retitles,
    list_detachments,
)
from svc_daemon.store.rows.tombstones import create_tombstone, find_successor, finish_tombstone
from svc_daemon.store.rows.webhook_deliveries import DeliveryRow, get_delivery, list_due
from svc_daemon.wire.light.webhook_calls import DELIVERED, GIVEN_UP, PENDING, Standing
from tests.store.rows import LATER, NOW, OURS, THEIRS, add_bucket, add_source, add_task, undone


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
    assert (has_expired_retitles(db, 51, 1e9), has_expired_retitles(db, 51, 1e8)) == (False, True)
    end_retitles(db, 51, 1e8)
    assert free(51) == ["src_1"]
    begin_retitle(db, OURS, "src_1", now_s=50, lease_until_s=1e9)
    end_retitles(db, inf)
    assert free(51) == ["src_1"]
    delete_detachment(db, "src_1", now_s=51)
    end_retitle(db, "src_1")
    assert free(51) == []


SOON = "2026-01-01T12:00:05.000Z"
FAR = "2026-01-01T12:02:00.000Z"


@pytest.mark.parametrize(
    ("change", "is_overlooked"),
    [
        ("UPDATE tasks SET status = 'queued'", True),
        ("UPDATE tasks SET status = 'queued', created_at = '{LATER}'", False),
        ("UPDATE tasks SET status = 'queued', next_attempt_at = '{LATER}'", False),
        ("UPDATE tasks SET status = 'queued', next_attempt_at = '{NOW}'", True),
        ("UPDATE tasks SET status = 'queued', next_attempt_at = '2026-01-01T13'", True),
        ("UPDATE tasks SET lease_until_s = 21", False),
        ("UPDATE tasks SET lease_until_s = 20", True),
        ("UPDATE tasks SET lease_until_s = 81", True),
        ("UPDATE tasks SET lease_until_s = 1, finished_at = '{NOW}', status = 'failed'", False),
        ("UPDATE memberships SET due_at = '{NOW}'", True),
        ("UPDATE memberships SET due_at = '{LATER}', lease_until_s = 21", False),
        ("UPDATE memberships SET lease_until_s = 20", True),
        ("UPDATE deliveries SET due_at = '{NOW}'", True),
        ("UPDATE deliveries SET due_at = '{LATER}'", False),
        ("UPDATE sources SET refresh_due_at = '{NOW}', status = 'active'", True),
        ("UPDATE sources SET refresh_due_at = '{NOW}', status = 'queued'", False),
        ("UPDATE sources SET refresh_due_at = '2026-02-01'", False),
        ("UPDATE tombstones SET cleaned_at = NULL", True),
        ("INSERT INTO detachments (source_id, team_id) VALUES ('src_1', '{OURS}')", True),
    ],
)
def test_work_is_overlooked_once_it_is_overdue_or_its_lease_has_expired(
    db: Connection, change: str, is_overlooked: bool
) -> None:
    def look() -> bool:
        return has_overlooked(db, before=SOON, far=FAR, now_s=20, latest_s=80)

    add_source(db, "1", add_bucket(db), sync="active")
    add_task(db, "1", source_id="src_1", status="running", lease_until_s=30)
    add_delivery(db, "1", due_at=None)
    create_tombstone(db, OURS, "src_2", "src_1", NOW)
    finish_tombstone(db, "src_2", NOW)
    assert not look()
    db.execute(change.format(NOW=NOW, LATER=LATER, OURS=OURS))
    assert look() == is_overlooked


def add_delivery(db: Connection, name: str, **given: Any) -> DeliveryRow:
    fields = {"team_id": OURS, "source_id": f"src_{name}", "event": "source.ready", "url": "https://a.example/hook"}
    delivery = DeliveryRow(id=f"evt_{name}", **{**fields, "body": "{}", "due_at": NOW, "created_at": NOW, **given})
    webhook_deliveries.create_delivery(db, delivery)
    return get_delivery(db, delivery.team_id, delivery.id)


def state(db: Connection, name: str) -> tuple[str, int, str | None]:
    delivery = get_delivery(db, OURS, f"evt_{name}")
    return delivery.status, delivery.tries_left, delivery.due_at


def test_list_due_returns_only_due_deliveries_that_are_not_busy(db: Connection) -> None:
    for name, due_at in (("1", NOW), ("2", SOON), ("3", LATER), ("4", None)):
        add_delivery(db, name, due_at=due_at)
    assert list_due(db, SOON, ["evt_1"], 10) == ["evt_2"]
    assert list_due(db, SOON, [], 1) == ["evt_1"]
    dues = [
        webhook_deliveries.next_delivery_due(db, busy) for busy in ([], ["evt_1", "evt_2"], ["evt_1", "evt_2", "evt_3"])
    ]
    assert dues == [NOW, LATER, None]


def test_many_deliveries_of_one_team_do_not_starve_another_team(db: Connection) -> None:
    for number in range(20):
        add_delivery(db, f"{number:02}", due_at=NOW)
    add_delivery(db, "theirs", team_id=THEIRS, due_at=SOON)
    assert "evt_theirs" in list_due(db, LATER, [], 2)
    # A slot that becomes free is for the team that has fewer, though the other one's calls have been due for longer.
    running = [f"evt_{number:02}" for number in range(15)]
    assert list_due(db, LATER, running, 1) == ["evt_theirs"]
    assert list_due(db, LATER, [*running[1:], "evt_theirs"], 1) == ["evt_00"]


def test_many_deliveries_to_one_receiver_do_not_starve_another_receiver_of_the_team(db: Connection) -> None:
    for number in range(20):
        add_delivery(db, f"{number:02}", due_at=NOW)
    add_delivery(db, "other", url="https://b.example/hook", due_at=SOON)
    running = [f"evt_{number:02}" for number in range(15)]
    assert list_due(db, LATER, running, 1) == ["evt_other"]
    assert list_due(db, LATER, [], 3) == ["evt_00", "evt_other", "evt_01"]


def test_delivery_keeps_the_outcome_of_its_call_unless_it_was_resent_during_it(db: Connection) -> None:
    added = add_delivery(db, "1")
    webhook_deliveries.move_delivery(db, added, Standing(PENDING, 1), SOON)
    waiting = get_delivery(db, OURS, "evt_1")
    assert state(db, "1") == (PENDING, 1, SOON)
    webhook_deliveries.move_delivery(db, waiting, Standing(DELIVERED, 0), None)
    assert state(db, "1") == (DELIVERED, 0, None)
    other = add_delivery(db, "2")
    webhook_deliveries.resend_delivery(db, "evt_2", SOON)
    webhook_deliveries.move_delivery(db, other, Standing(GIVEN_UP, 0), None)
    assert state(db, "2") == (PENDING, 1, SOON)
