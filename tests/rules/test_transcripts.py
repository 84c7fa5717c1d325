"""README.md's commands are found as they are shown."""

import re

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


def test_the_readme_marks_the_command_of_the_tests_and_shows_others_that_can_be_run() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "pytest" in command_of_the_tests(readme)
    lines = [command.line for command in shown_commands(readme)]
    for command in ("svc upload", "svc search"):
        assert any(command in line for line in lines), command


def test_the_checks_run_what_the_docs_show() -> None:
    docs = (ROOT / "docs" / "development.md").read_text(encoding="utf-8")
    checks = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "python3 -m tests.rules.transcripts" in checks
    for part in ("-c constraints.txt -e '.[cluster-test]'", "tests/cluster", "--cluster"):
        assert (part in docs, part in checks) == (True, True), part
    sample = re.findall(r"tests/cluster/\w+\.py", checks)
    assert len(sample) >= 3
    assert [path for path in sample if not (ROOT / path).exists()] == []


def test_the_tasks_that_the_docs_show_are_in_the_makefile_and_a_commit_runs_the_check() -> None:
    makefile, hooks, *pages = (
        (ROOT / name).read_text(encoding="utf-8")
        for name in ("Makefile", ".pre-commit-config.yaml", "CONTRIBUTING.md", "docs/development.md")
    )
    shown = set(re.findall(r"`make ([a-z]+)`", "".join(pages)))
    assert {"setup", "check", "test"} <= shown <= set(re.findall(r"^([a-z]+): # ", makefile, re.MULTILINE))
    assert re.findall("entry: (.*)", hooks) == ["make check"]
    assert re.search(r"^check:.*\n\tsh \.ci/check$", makefile, re.MULTILINE)


def test_commands_come_in_order_with_their_output_and_that_of_the_tests_is_marked_once() -> None:
    assert shown_commands(PAGE) == [
        Command("pip install . && svc upload docs -b handbook"),
        Command('svc search "two words" -b handbook', ("docs/a.md:… two words",)),
        Command("svc --version"),
    ]
    assert command_of_the_tests(PAGE) == "pip install '.[test]' && pytest"
    for page in ("", PAGE + PAGE, "<!-- the tests -->\n```sh\n```\n"):
        with pytest.raises(LookupError):
            command_of_the_tests(page)


def test_output_is_promised_line_by_line_and_in_order() -> None:
    promised = Command("run", ("a … b", "c"))
    assert promised.promises("before\na 12 b\nbetween\nc\nafter\n")
    for printed in ("a 12 b\n", "c\na 12 b\n", "a 12 bb\nc\n"):
        assert not promised.promises(printed), printed
