"""README.md's commands are found as they are shown."""

import pytest

from tests.rules.modules import ROOT
from tests.rules.transcripts import Command, command_of_the_tests, shown_commands

PAGE = """# Title

```sh
pip install . \\
    && svc upload docs -b handbook
```

Then

```console
$ svc search "two words" -b handbook
docs/a.md:… two words
$ svc --version
```

<!-- not run -->
```sh
svc search
```

<!-- the tests -->

```sh
pip install '.[test]'
pytest
```

```text
$ not a command
```
"""


def test_the_readme_marks_the_command_of_the_tests() -> None:
    assert "pytest" in command_of_the_tests((ROOT / "README.md").read_text(encoding="utf-8"))


def test_the_readme_shows_commands_that_can_be_run() -> None:
    lines = [command.line for command in shown_commands((ROOT / "README.md").read_text(encoding="utf-8"))]
    assert any("svc upload" in line for line in lines)
    assert any("svc search" in line for line in lines)


def test_shown_commands_come_in_order_with_their_output() -> None:
    assert shown_commands(PAGE) == [
        Command("pip install . && svc upload docs -b handbook"),
        Command('svc search "two words" -b handbook', ("docs/a.md:… two words",)),
        Command("svc --version"),
    ]


def test_the_lines_of_the_tests_are_one_command() -> None:
    assert command_of_the_tests(PAGE) == "pip install '.[test]' && pytest"


@pytest.mark.parametrize("page", ["", PAGE + PAGE, "<!-- the tests -->\n```sh\n```\n"])
def test_the_command_of_the_tests_must_be_marked_once(page: str) -> None:
    with pytest.raises(LookupError):
        command_of_the_tests(page)


@pytest.mark.parametrize(
    ("printed", "kept"),
    [
        ("before\na 12 b\nbetween\nc\nafter\n", True),
        ("a 12 b\n", False),
        ("c\na 12 b\n", False),
        ("a 12 bb\nc\n", False),
    ],
)
def test_output_is_promised_line_by_line_and_in_order(printed: str, kept: bool) -> None:
    assert Command("run", ("a … b", "c")).promises(printed) is kept
