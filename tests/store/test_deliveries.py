"""Deliveries and their calls: each event once, each team in turn, each call kept."""

from dataclasses import replace
from sqlite3 import Connection
from typing import Any

import pytest

from svc_daemon.core.webhooks import DELIVERED, GIVEN_UP, PENDING, Standing
from svc_daemon.errors import NotFound
from svc_daemon.store.deliveries import (
    Attempt,
    DeliveryFilter,
    DeliveryRow,
    SecretGeneration,
    create_attempt,
    create_delivery,
    find_generation,
    get_delivery,
    list_attempts,
    list_deliveries,
    list_due,
    move_delivery,
    next_delivery_due,
    resend_delivery,
    rotate_secret,
)
from tests.store.rows import LATER, NOW, OURS, THEIRS, plan

SOON = "2026-01-01T12:00:05.000Z"


def make_delivery(name: str, **given: Any) -> DeliveryRow:
    delivery = DeliveryRow(
        id=f"evt_{name}",
        team_id=OURS,
        source_id=f"src_{name}",
        event="source.ready",
        url="https://a.example/hook",
        body="{}",
        due_at=NOW,
        created_at=NOW,
    )
    return replace(delivery, **given)


def add_delivery(connection: Connection, name: str, **given: Any) -> DeliveryRow:
    delivery = make_delivery(name, **given)
    create_delivery(connection, delivery)
    return get_delivery(connection, delivery.team_id, delivery.id)


def make_attempt(delivery_id: str, **given: Any) -> Attempt:
    attempt = Attempt(delivery_id=delivery_id, started_at=NOW, duration_ms=3, http_status=500, error=None)
    return replace(attempt, **given)


def test_a_source_has_each_event_once(connection: Connection) -> None:
    first = add_delivery(connection, "1")
    create_delivery(connection, make_delivery("2", source_id="src_1"))
    add_delivery(connection, "3", source_id="src_1", event="source.failed")
    assert first == make_delivery("1")
    assert [each.id for each in list_deliveries(connection, OURS, DeliveryFilter())] == ["evt_1", "evt_3"]


def test_another_teams_deliveries_do_not_exist(connection: Connection) -> None:
    add_delivery(connection, "1", team_id=THEIRS)
    assert list_deliveries(connection, OURS, DeliveryFilter()) == []
    with pytest.raises(NotFound):
        get_delivery(connection, OURS, "evt_1")


def test_calls_are_numbered_and_kept_whole(connection: Connection) -> None:
    add_delivery(connection, "1")
    add_delivery(connection, "2")
    error = {"code": "url_fetch_failed", "message": "No.", "reason": "timeout"}
    create_attempt(connection, make_attempt("evt_1"))
    create_attempt(connection, make_attempt("evt_1", http_status=None, error=error))
    create_attempt(connection, make_attempt("evt_2", http_status=204))
    attempts = list_attempts(connection, ["evt_1", "evt_2"])
    assert attempts["evt_1"] == [
        make_attempt("evt_1", attempt=1),
        make_attempt("evt_1", http_status=None, error=error, attempt=2),
    ]
    assert [each.attempt for each in attempts["evt_2"]] == [1]


def test_only_what_is_due_and_not_busy_is_taken(connection: Connection) -> None:
    for name, due_at in (("1", NOW), ("2", SOON), ("3", LATER), ("4", None)):
        add_delivery(connection, name, due_at=due_at)
    assert [each.id for each in list_due(connection, SOON, ["evt_1"], 10)] == ["evt_2"]
    assert [each.id for each in list_due(connection, SOON, [], 1)] == ["evt_1"]
    assert next_delivery_due(connection, []) == NOW
    assert next_delivery_due(connection, ["evt_1", "evt_2"]) == LATER
    assert next_delivery_due(connection, ["evt_1", "evt_2", "evt_3"]) is None


def test_one_teams_thousand_calls_do_not_starve_anothers_one(connection: Connection) -> None:
    for number in range(20):
        add_delivery(connection, f"{number:02}", due_at=NOW)
    add_delivery(connection, "theirs", team_id=THEIRS, due_at=SOON)
    assert "evt_theirs" in [each.id for each in list_due(connection, LATER, [], 2)]


def test_a_delivery_stands_where_its_call_has_put_it(connection: Connection) -> None:
    delivery = add_delivery(connection, "1")
    move_delivery(connection, delivery, Standing(PENDING, 1), SOON)
    waiting = get_delivery(connection, OURS, "evt_1")
    assert (waiting.status, waiting.tries_left, waiting.due_at) == (PENDING, 1, SOON)
    move_delivery(connection, waiting, Standing(DELIVERED, 0), None)
    done = get_delivery(connection, OURS, "evt_1")
    assert (done.status, done.tries_left, done.due_at) == (DELIVERED, 0, None)


def test_what_was_asked_for_during_a_call_is_still_to_be_sent(connection: Connection) -> None:
    delivery = add_delivery(connection, "1")
    resend_delivery(connection, "evt_1", SOON)
    move_delivery(connection, delivery, Standing(GIVEN_UP, 0), None)
    asked = get_delivery(connection, OURS, "evt_1")
    assert (asked.status, asked.tries_left, asked.due_at) == (PENDING, 1, SOON)


def test_listings_are_filtered_and_paged(connection: Connection) -> None:
    for name in "123":
        add_delivery(connection, name)
    move_delivery(connection, make_delivery("2"), Standing(DELIVERED, 0), None)

    def ids(chosen: DeliveryFilter) -> list[str]:
        return [each.id for each in list_deliveries(connection, OURS, chosen)]

    assert ids(DeliveryFilter(status=PENDING)) == ["evt_1", "evt_3"]
    assert ids(DeliveryFilter(source_id="src_2")) == ["evt_2"]
    assert ids(DeliveryFilter(after="evt_1", limit=1)) == ["evt_2"]


def test_what_is_due_is_found_through_its_index(connection: Connection) -> None:
    assert "deliveries_due" in plan(connection, lambda: list_due(connection, NOW, [], 16))
    assert "deliveries_due" in plan(connection, lambda: next_delivery_due(connection, []))
    assert "deliveries_of_team" in plan(connection, lambda: list_deliveries(connection, OURS, DeliveryFilter()))


def test_a_rotation_counts_a_teams_secrets(connection: Connection) -> None:
    assert find_generation(connection, OURS) == SecretGeneration(generation=0, rotated_at=None)
    rotate_secret(connection, OURS, NOW)
    assert rotate_secret(connection, OURS, LATER) == SecretGeneration(generation=2, rotated_at=LATER)
    assert find_generation(connection, OURS) == SecretGeneration(generation=2, rotated_at=LATER)
    assert find_generation(connection, THEIRS).generation == 0
