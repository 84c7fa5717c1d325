"""Signatures of webhook calls, and which calls are retried."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from svc_daemon.core.access.api_keys import secret_text
from svc_daemon.wire.light import webhook_calls
from svc_daemon.wire.light.webhook_calls import Standing, judge_call, signed_headers

OLD, NEW, OTHER = (secret_text(bytes([number]) * 32) for number in range(3))
BODY = '{"type": "source.ready", "title": "Ünïcode"}'.encode()
EVENT = "evt_01J00000000000000000000000"


@pytest.mark.parametrize("zone_hours", [-8, 0, 5.5])
def test_signature_is_the_same_in_any_time_zone(zone_hours: float) -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 999_999, tzinfo=UTC)
    elsewhere = moment.astimezone(timezone(timedelta(hours=zone_hours)))
    assert signed_headers([NEW], EVENT, elsewhere, BODY) == signed_headers([NEW], EVENT, moment, BODY)
    assert signed_headers([NEW], EVENT, moment, BODY)["webhook-timestamp"] == "1767323045"


def test_signing_requires_a_valid_secret_and_a_time_zone() -> None:
    assert NEW.startswith("whsec_")
    with pytest.raises(ValueError, match="32 bytes"):
        secret_text(b"short")
    with pytest.raises(ValueError, match="secret"):
        signed_headers([], EVENT, datetime.now(UTC), BODY)
    with pytest.raises(ValueError, match="zone"):
        signed_headers([NEW], EVENT, datetime(2026, 1, 1), BODY)


def test_failed_webhook_call_is_retried_while_tries_are_left() -> None:
    delivered, pending = Standing(webhook_calls.DELIVERED, 0), Standing(webhook_calls.PENDING, 1)
    given_up = Standing(webhook_calls.GIVEN_UP, 0)
    for http_status, tries_left, standing in [
        *((200, 2, delivered), (204, 1, delivered), (299, 1, delivered)),
        *((199, 2, pending), (302, 2, pending), (500, 2, pending), (None, 2, pending)),
        *((500, 1, given_up), (None, 1, given_up), (404, 0, given_up)),
    ]:
        assert judge_call(http_status, tries_left) == standing, (http_status, tries_left)
