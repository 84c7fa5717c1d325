"""Deliveries and their calls: each event once, each team in turn, each call kept."""

from dataclasses import replace
from sqlite3 import Connection
from typing import Any

import pytest

from svc_daemon.core.webhooks import DELIVERED, GIVEN_UP, PENDING, Standing
from svc_daemon.errors import NotFound
from svc_daemon.store import deliveries
from svc_daemon.store.deliveries import Attempt, DeliveryFilter, DeliveryRow, SecretGeneration, get_delivery, list_due
from tests.store.rows import LATER, NOW, OURS, THEIRS

SOON = "2026-01-01T12:00:05.000Z"


def make_delivery(name: str, **given: Any) -> DeliveryRow:
    fields = {"team_id": OURS, "source_id": f"src_{name}", "event": "source.ready", "url": "https://a.example/hook"}
    return DeliveryRow(id=f"evt_{name}", **{**fields, "body": "{}", "due_at": NOW, "created_at": NOW, **given})


def add_delivery(db: Connection, name: str, **given: Any) -> DeliveryRow:
    delivery = make_delivery(name, **given)
    deliveries.create_delivery(db, delivery)
    return get_delivery(db, delivery.team_id, delivery.id)


def listed(db: Connection, **chosen: Any) -> list[str]:
    return [each.id for each in deliveries.list_deliveries(db, OURS, DeliveryFilter(**chosen))]


def state(delivery: DeliveryRow) -> tuple[str, int, str | None]:
    return delivery.status, delivery.tries_left, delivery.due_at


def test_a_source_has_each_event_once(db: Connection) -> None:
    first = add_delivery(db, "1")
    deliveries.create_delivery(db, make_delivery("2", source_id="src_1"))
    add_delivery(db, "3", source_id="src_1", event="source.failed")
    assert first == make_delivery("1")
    assert listed(db) == ["evt_1", "evt_3"]


def test_listings_are_the_teams_own_filtered_and_paged(db: Connection) -> None:
    for name in "123":
        add_delivery(db, name)
    add_delivery(db, "4", team_id=THEIRS)
    deliveries.move_delivery(db, make_delivery("2"), Standing(DELIVERED, 0), None)
    assert listed(db, status=PENDING) == ["evt_1", "evt_3"]
    assert listed(db, source_id="src_2") == ["evt_2"]
    assert listed(db, after="evt_1", limit=1) == ["evt_2"]
    with pytest.raises(NotFound):
        get_delivery(db, OURS, "evt_4")


def test_calls_are_numbered_and_kept_whole(db: Connection) -> None:
    error = {"code": "url_fetch_failed", "message": "No.", "reason": "timeout"}
    for name in "12":
        add_delivery(db, name)
    call = Attempt(delivery_id="evt_1", started_at=NOW, duration_ms=3, http_status=500, error=None)
    calls = [call, replace(call, http_status=None, error=error), replace(call, delivery_id="evt_2", http_status=204)]
    for each in calls:
        deliveries.create_attempt(db, each)
    first, second, other = (replace(each, attempt=number) for each, number in zip(calls, (1, 2, 1), strict=True))
    assert deliveries.list_attempts(db, ["evt_1", "evt_2"]) == {"evt_1": [first, second], "evt_2": [other]}


def test_only_what_is_due_and_not_busy_is_taken(db: Connection) -> None:
    for name, due_at in (("1", NOW), ("2", SOON), ("3", LATER), ("4", None)):
        add_delivery(db, name, due_at=due_at)
    assert [each.id for each in list_due(db, SOON, ["evt_1"], 10)] == ["evt_2"]
    assert [each.id for each in list_due(db, SOON, [], 1)] == ["evt_1"]
    dues = [deliveries.next_delivery_due(db, busy) for busy in ([], ["evt_1", "evt_2"], ["evt_1", "evt_2", "evt_3"])]
    assert dues == [NOW, LATER, None]


def test_one_teams_thousand_calls_do_not_starve_anothers_one(db: Connection) -> None:
    for number in range(20):
        add_delivery(db, f"{number:02}", due_at=NOW)
    add_delivery(db, "theirs", team_id=THEIRS, due_at=SOON)
    assert "evt_theirs" in [each.id for each in list_due(db, LATER, [], 2)]


def test_a_delivery_is_where_its_call_has_put_it_or_was_asked_for_during_it(db: Connection) -> None:
    added = add_delivery(db, "1")
    deliveries.move_delivery(db, added, Standing(PENDING, 1), SOON)
    waiting = get_delivery(db, OURS, "evt_1")
    assert state(waiting) == (PENDING, 1, SOON)
    deliveries.move_delivery(db, waiting, Standing(DELIVERED, 0), None)
    assert state(get_delivery(db, OURS, "evt_1")) == (DELIVERED, 0, None)
    other = add_delivery(db, "2")
    deliveries.resend_delivery(db, "evt_2", SOON)
    deliveries.move_delivery(db, other, Standing(GIVEN_UP, 0), None)
    assert state(get_delivery(db, OURS, "evt_2")) == (PENDING, 1, SOON)


def test_a_rotation_counts_a_teams_secrets(db: Connection) -> None:
    find = deliveries.find_generation
    assert find(db, OURS) == SecretGeneration(generation=0, rotated_at=None)
    deliveries.rotate_secret(db, OURS, NOW)
    assert deliveries.rotate_secret(db, OURS, LATER) == SecretGeneration(generation=2, rotated_at=LATER)
    assert (find(db, OURS).generation, find(db, THEIRS).generation) == (2, 0)
