"""Signatures that the standard's own library takes, and those that it refuses."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from svc_daemon.core.webhook_secrets import secret_text
from svc_daemon.wire.webhook_signatures import signed_headers

OLD, NEW, OTHER = (secret_text(bytes([number]) * 32) for number in range(3))
BODY = '{"type": "source.ready", "title": "Ünïcode"}'.encode()
EVENT = "evt_01J00000000000000000000000"


def test_the_timestamp_is_the_same_moment_in_any_zone() -> None:
    for zone_hours in [-8, 0, 5.5]:
        moment = datetime(2026, 1, 2, 3, 4, 5, 999_999, tzinfo=UTC)
        elsewhere = moment.astimezone(timezone(timedelta(hours=zone_hours)))
        assert signed_headers([NEW], EVENT, elsewhere, BODY) == signed_headers([NEW], EVENT, moment, BODY)
        assert signed_headers([NEW], EVENT, moment, BODY)["webhook-timestamp"] == "1767323045"


def test_nothing_is_signed_without_a_whole_secret_or_a_zone() -> None:
    assert NEW.startswith("whsec_")
    with pytest.raises(ValueError, match="32 bytes"):
        secret_text(b"short")
    with pytest.raises(ValueError, match="secret"):
        signed_headers([], EVENT, datetime.now(UTC), BODY)
    with pytest.raises(ValueError, match="zone"):
        signed_headers([NEW], EVENT, datetime(2026, 1, 1), BODY)
