"""What a webhook's call says, what follows from its answer, and where its secret comes from."""

import pytest

from svc_daemon.core.webhooks import DELIVERED, GIVEN_UP, PENDING, Standing, event_body, judge_call, team_secret

DATA = {"id": "src_1", "status": "active", "ready": True}


@pytest.mark.parametrize(
    ("http_status", "tries_left", "standing"),
    [
        (200, 2, Standing(DELIVERED, 0)),
        (204, 1, Standing(DELIVERED, 0)),
        (299, 1, Standing(DELIVERED, 0)),
        (199, 2, Standing(PENDING, 1)),
        (302, 2, Standing(PENDING, 1)),
        (500, 2, Standing(PENDING, 1)),
        (None, 2, Standing(PENDING, 1)),
        (500, 1, Standing(GIVEN_UP, 0)),
        (None, 1, Standing(GIVEN_UP, 0)),
        (404, 0, Standing(GIVEN_UP, 0)),
    ],
)
def test_only_success_ends_well_and_only_one_retry_follows(
    http_status: int | None, tries_left: int, standing: Standing
) -> None:
    assert judge_call(http_status, tries_left) == standing


def test_a_call_names_the_event_twice_so_that_both_conventions_read_it() -> None:
    body = event_body("source.ready", "evt_1", "2026-01-01T12:00:00.000Z", {"a": 1}, DATA)
    assert (body["type"], body["event"]) == ("source.ready", "source.ready")
    assert (body["id"], body["source_id"], body["metadata"]) == ("evt_1", "src_1", {"a": 1})
    assert (body["data"], "reason" in body) == (DATA, False)


def test_a_failure_has_its_code_as_the_reason() -> None:
    body = event_body("source.failed", "evt_1", "now", {}, {**DATA, "error": {"code": "max_attempts_exhausted"}})
    assert body["reason"] == "max_attempts_exhausted"


def test_a_secret_is_the_same_each_time_and_another_for_all_else() -> None:
    secret = team_secret(b"s" * 32, "team_1", 0)
    assert secret == team_secret(b"s" * 32, "team_1", 0)
    others = [
        team_secret(b"t" * 32, "team_1", 0),
        team_secret(b"s" * 32, "team_2", 0),
        team_secret(b"s" * 32, "team_1", 1),
    ]
    assert len({secret, *others}) == 4
