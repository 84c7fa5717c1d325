"""Signatures that the standard's own library takes, and those that it refuses."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from svc_daemon.core.webhook_signatures import secret_text, signed_headers

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


@pytest.mark.parametrize("zone_hours", [-8, 0, 5.5])
def test_the_timestamp_is_the_same_moment_in_any_zone(zone_hours: float) -> None:
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


@pytest.mark.parametrize("minutes", [-6, 6])
def test_an_old_or_early_call_is_refused(minutes: int) -> None:
    headers = signed_headers([NEW], EVENT, datetime.now(UTC) + timedelta(minutes=minutes), BODY)
    with pytest.raises(WebhookVerificationError, match="too"):
        Webhook(NEW).verify(BODY, headers)


def test_a_secret_has_its_prefix_and_size() -> None:
    assert NEW.startswith("whsec_")
    with pytest.raises(ValueError, match="32 bytes"):
        secret_text(b"short")


def test_nothing_is_signed_without_a_secret_or_a_zone() -> None:
    with pytest.raises(ValueError, match="secret"):
        signed_headers([], EVENT, datetime.now(UTC), BODY)
    with pytest.raises(ValueError, match="zone"):
        signed_headers([NEW], EVENT, datetime(2026, 1, 1), BODY)
