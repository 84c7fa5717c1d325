"""Webhook deliveries are listed when due, fairly between teams, and keep the outcome of their calls."""

from typing import Any

from svc_daemon.databases.contract import Connection
from svc_daemon.store import webhook_deliveries
from svc_daemon.store.webhook_deliveries import DeliveryRow, get_delivery, list_due
from svc_daemon.wire.webhook_retries import DELIVERED, GIVEN_UP, PENDING, Standing
from tests.store.rows import LATER, NOW, OURS, THEIRS

SOON = "2026-01-01T12:00:05.000Z"


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
    assert [each.id for each in list_due(db, SOON, ["evt_1"], 10)] == ["evt_2"]
    assert [each.id for each in list_due(db, SOON, [], 1)] == ["evt_1"]
    dues = [
        webhook_deliveries.next_delivery_due(db, busy) for busy in ([], ["evt_1", "evt_2"], ["evt_1", "evt_2", "evt_3"])
    ]
    assert dues == [NOW, LATER, None]


def test_many_deliveries_of_one_team_do_not_starve_another_team(db: Connection) -> None:
    for number in range(20):
        add_delivery(db, f"{number:02}", due_at=NOW)
    add_delivery(db, "theirs", team_id=THEIRS, due_at=SOON)
    assert "evt_theirs" in [each.id for each in list_due(db, LATER, [], 2)]


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
