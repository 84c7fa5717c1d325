"""The page on proof: it has each promise of README, and each of its commands exists and runs with every change."""

import re
from importlib.util import find_spec

from tests.rules.modules import ROOT

PAGE = (ROOT / "docs" / "explanation" / "proof.md").read_text(encoding="utf-8")
COMMAND = re.compile(r"`(pytest|python -m) ([^`]+)`")
PROMISE = re.compile(r"^\* \*\*(.+?)\*\*", re.MULTILINE)


def plain(text: str) -> str:
    """The words without their marks."""
    return re.sub(r"[`*]", "", text)


def test_page_has_each_promise_of_the_readme() -> None:
    promises = PROMISE.findall((ROOT / "README.md").read_text(encoding="utf-8").partition("\n## ")[0])
    assert len(promises) >= 4
    assert [promise for promise in promises if f"| {plain(promise)} |" not in plain(PAGE)] == []


def test_each_command_exists_and_its_short_form_is_part_of_all_tests() -> None:
    commands = COMMAND.findall(PAGE)
    assert len(commands) >= 10
    for program, words in commands:
        first, *rest = words.split()
        if program == "python -m":
            # Its own tests run it.
            assert find_spec(first) is not None, first
            assert rest == [] or all(word.isdigit() for word in rest), words
            continue
        paths = [ROOT / word for word in words.split() if word != "--large"]
        # Without options, `pytest` runs what is below `tests`, and nothing there is left out by default.
        missing = [path for path in paths if not path.is_relative_to(ROOT / "tests") or not path.exists()]
        assert not missing, f"{words}: there is no {missing}"
