"""What is gone leaves the bucket only where nothing speaks against it."""

import pytest

from svc_cli.errors import SafetyStop, UsageError
from svc_cli.sync.safety import DEFAULT_MAX_DELETE, MaxDelete, refuse_lost_root, too_many


@pytest.mark.parametrize(
    ("limit", "gone", "owned", "is_allowed"),
    [
        ("25%", 25, 100, True),
        ("25%", 26, 100, False),
        ("25%", 10, 10, True),
        ("25%", 11, 11, False),
        ("0%", 10, 1000, True),
        ("0%", 11, 1000, False),
        ("5", 5, 5, True),
        ("5", 6, 1000, False),
        ("0", 1, 1000, False),
        ("100%", 500, 500, True),
    ],
)
def test_a_limit_is_a_number_or_a_share(limit: str, gone: int, owned: int, is_allowed: bool) -> None:
    assert MaxDelete.parse(limit).allows(gone, owned) is is_allowed


@pytest.mark.parametrize("text", ["", "%", "-1", "101%", "ten", "1.5", "٣"])
def test_a_limit_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--max-delete"):
        MaxDelete.parse(text)


def test_too_many_are_told_with_the_way_out() -> None:
    stop = too_many(30, 100, DEFAULT_MAX_DELETE)
    assert str(stop) == "30 of 100 files are gone, more than 25 %; nothing was removed."
    assert stop.hint == "if that is right, run `svc sync` with --max-delete 30."


@pytest.mark.parametrize(
    ("exists", "is_empty", "owned", "stops"),
    [
        (True, False, 5, False),
        (True, True, 5, True),
        (False, True, 5, True),
        (True, True, 0, False),
        (False, True, 0, False),
    ],
)
def test_a_root_that_was_full_is_not_taken_for_an_empty_one(
    exists: bool, is_empty: bool, owned: int, stops: bool
) -> None:
    if not stops:
        refuse_lost_root("docs", exists=exists, is_empty=is_empty, owned=owned)
        return
    with pytest.raises(SafetyStop, match="5 files of it are in the bucket"):
        refuse_lost_root("docs", exists=exists, is_empty=is_empty, owned=owned)
