"""Tests when an API key is valid."""

from tests.store.rows import LATER, NOW, make_key

EARLIER = "2026-01-01T11:59:59.999Z"
#: Whether a key is valid now, by its expiry and the time when it was revoked.
LIVES: dict[tuple[str | None, str | None], bool] = {
    (None, None): True,
    ("2026-01-01T12:00:00.001Z", None): True,
    (NOW, None): False,
    (EARLIER, None): False,
    (None, EARLIER): False,
    (LATER, EARLIER): False,
}


def test_a_key_is_valid_until_it_expires_or_is_revoked() -> None:
    assert {cell: make_key(expires_at=cell[0], revoked_at=cell[1]).is_live(NOW) for cell in LIVES} == LIVES
