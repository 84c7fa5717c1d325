"""Signatures that the standard's own library takes, and those that it refuses."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from svc_daemon.core import webhooks
from svc_daemon.core.webhooks import Standing, event_body, judge_call, secret_text, signed_headers, team_secret

OLD, NEW, OTHER = (secret_text(bytes([number]) * 32) for number in range(3))
BODY = '{"type": "source.ready", "title": "Ünïcode"}'.encode()
EVENT = "evt_01J00000000000000000000000"


def test_the_library_takes_what_we_sign() -> None:
    headers = signed_headers([NEW], EVENT, datetime.now(UTC), BODY)
    assert Webhook(NEW).verify(BODY, headers) == {"type": "source.ready", "title": "Ünïcode"}
    assert set(headers) == {"webhook-id", "webhook-timestamp", "webhook-signature"}
    assert headers["webhook-id"] == EVENT


def test_during_a_rotation_both_secrets_verify() -> None:
    headers = signed_headers([NEW, OLD], EVENT, datetime.now(UTC), BODY)
    assert len(headers["webhook-signature"].split(" ")) == 2
    for secret in (NEW, OLD):
        Webhook(secret).verify(BODY, headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(OTHER).verify(BODY, headers)


def test_the_timestamp_is_the_same_moment_in_any_zone() -> None:
    for zone_hours in [-8, 0, 5.5]:
        moment = datetime(2026, 1, 2, 3, 4, 5, 999_999, tzinfo=UTC)
        elsewhere = moment.astimezone(timezone(timedelta(hours=zone_hours)))
        assert signed_headers([NEW], EVENT, elsewhere, BODY) == signed_headers([NEW], EVENT, moment, BODY)
        assert signed_headers([NEW], EVENT, moment, BODY)["webhook-timestamp"] == "1767323045"


def test_a_changed_body_id_or_time_is_refused() -> None:
    now = datetime.now(UTC)
    headers = signed_headers([NEW], EVENT, now, BODY)
    later = str(int(now.timestamp()) + 1)
    for changed in ({"webhook-id": "evt_other"}, {"webhook-timestamp": later}, {"webhook-signature": "v1,AAAA"}):
        with pytest.raises(WebhookVerificationError):
            Webhook(NEW).verify(BODY, headers | changed)
    with pytest.raises(WebhookVerificationError):
        Webhook(NEW).verify(BODY + b" ", headers)


def test_an_old_or_early_call_is_refused() -> None:
    for minutes in [-6, 6]:
        headers = signed_headers([NEW], EVENT, datetime.now(UTC) + timedelta(minutes=minutes), BODY)
        with pytest.raises(WebhookVerificationError, match="too"):
            Webhook(NEW).verify(BODY, headers)


def test_nothing_is_signed_without_a_whole_secret_or_a_zone() -> None:
    assert NEW.startswith("whsec_")
    with pytest.raises(ValueError, match="32 bytes"):
        secret_text(b"short")
    with pytest.raises(ValueError, match="secret"):
        signed_headers([], EVENT, datetime.now(UTC), BODY)
    with pytest.raises(ValueError, match="zone"):
        signed_headers([NEW], EVENT, datetime(2026, 1, 1), BODY)


DATA = {"id": "src_1", "status": "active", "ready": True}


def test_only_success_ends_well_and_only_one_retry_follows() -> None:
    delivered, pending, given_up = (
        Standing(webhooks.DELIVERED, 0),
        Standing(webhooks.PENDING, 1),
        Standing(webhooks.GIVEN_UP, 0),
    )
    for http_status, tries_left, standing in [
        *((200, 2, delivered), (204, 1, delivered), (299, 1, delivered)),
        *((199, 2, pending), (302, 2, pending), (500, 2, pending), (None, 2, pending)),
        *((500, 1, given_up), (None, 1, given_up), (404, 0, given_up)),
    ]:
        assert judge_call(http_status, tries_left) == standing, (http_status, tries_left)


def test_a_call_names_the_event_twice_so_that_both_conventions_read_it() -> None:
    body = event_body("source.ready", "evt_1", "2026-01-01T12:00:00.000Z", {"a": 1}, DATA)
    assert (body["type"], body["event"]) == ("source.ready", "source.ready")
    assert (body["id"], body["source_id"], body["metadata"]) == ("evt_1", "src_1", {"a": 1})
    assert (body["data"], "reason" in body) == (DATA, False)
    failed = event_body("source.failed", "evt_1", "now", {}, {**DATA, "error": {"code": "max_attempts_exhausted"}})
    assert failed["reason"] == "max_attempts_exhausted"


def test_a_secret_is_the_same_each_time_and_another_for_all_else() -> None:
    same = (b"s" * 32, "team_1", 0)
    assert team_secret(*same) == team_secret(*same)
    others = [(b"t" * 32, "team_1", 0), (b"s" * 32, "team_2", 0), (b"s" * 32, "team_1", 1)]
    assert len({team_secret(*each) for each in (same, *others)}) == 4
