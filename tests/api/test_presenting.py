"""Parsing of query parameters that are flags or numbers."""

import pytest

from svc_daemon.api.presenting import flag, whole_number
from svc_daemon.errors import ServiceError

FLAGS = {"true": True, "TRUE": True, "1": True, "false": False, "False": False, "0": False, "": False, None: False}
NUMBERS = {"0": 0, "10": 10, "007": 7, "9" * 18: int("9" * 18)}
NO_NUMBERS = ("", "-1", "+1", "1.0", " 1", "1_0", "٣", "1e3", "0x1", "9" * 19, "9" * 5000)


def test_flag_is_true_false_1_or_0_and_any_other_value_is_refused() -> None:
    assert {text: flag("dry_run", text) for text in FLAGS} == FLAGS
    for text in ("yes", "no", "2", "tru", " true", "on"):
        with pytest.raises(ServiceError, match="dry_run") as caught:
            flag("dry_run", text)
        assert caught.value.code == "invalid_request", text


def test_whole_number_is_parsed_and_any_other_text_is_returned_unchanged() -> None:
    assert {text: whole_number(text) for text in NUMBERS} == NUMBERS
    assert tuple(whole_number(text) for text in NO_NUMBERS) == NO_NUMBERS
