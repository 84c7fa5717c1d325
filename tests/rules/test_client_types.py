"""The types of the Python client's answers are those of the daemon's models."""

import pytest

from tests.rules.client_types import COMMAND, FOLDER, UNASKED, answers, generated


@pytest.mark.rule("client.types")
def test_the_committed_types_are_those_of_the_models() -> None:
    committed = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.py")}
    assert committed == generated(), COMMAND


def test_only_fields_that_can_be_null_are_left_out() -> None:
    fields = {(model.__name__, name): each for model in answers() for name, each in model.model_fields.items()}
    assert [key for key in UNASKED if fields[key].is_required()] == []
