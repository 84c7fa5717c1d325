"""The commands that README.md shows, so that what it shows is what runs.

A fence of language `sh` holds commands. One of language `console` holds commands after `$ ` and the output that each
prints, where `…` matches anything. A line `<!-- the tests -->` before a fence marks the command that runs the tests;
`<!-- not run -->` marks one that no check can run. Everything else is run by the acceptance tests, in order.

`python -m tests.rules.transcripts` prints the command that runs the tests.
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

THE_TESTS = "the tests"
NOT_RUN = "not run"

_FENCE = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]*?) -->\n+)?^```(?P<language>\w*)[^\n]*\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Command:
    """One shown command and the output that the reader is promised."""

    line: str
    #: Lines of output; empty where none is shown.
    output: tuple[str, ...] = ()

    def promises(self, printed: str) -> bool:
        """Whether the promised lines stand in what was printed, in this order."""
        pattern = ".*".join(f"^{_anything(line)}$" for line in self.output)
        return re.search(pattern, printed, re.MULTILINE | re.DOTALL) is not None


def _anything(line: str) -> str:
    """A pattern for one line in which `…` matches anything."""
    return r"[^\n]*".join(re.escape(part) for part in line.rstrip().split("…"))


@dataclass(frozen=True, slots=True)
class Fence:
    #: The comment before it; empty where there is none.
    mark: str
    commands: tuple[Command, ...]


def fences(markdown: str) -> Iterator[Fence]:
    """The shell blocks of a page in order."""
    for match in _FENCE.finditer(markdown):
        body = re.sub(r" *\\\n *>? ?", " ", match["body"])
        if match["language"] == "sh":
            yield Fence(match["mark"] or "", tuple(Command(line) for line in body.splitlines() if line.strip()))
        elif match["language"] == "console":
            yield Fence(match["mark"] or "", tuple(_console(body)))


def _console(body: str) -> Iterator[Command]:
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        line, _, output = part.partition("\n")
        yield Command(line, tuple(output.rstrip().splitlines()))


def shown_commands(markdown: str) -> list[Command]:
    """What a reader would type, less the tests and what can't run here."""
    shown = (fence for fence in fences(markdown) if fence.mark not in {THE_TESTS, NOT_RUN})
    return [command for fence in shown for command in fence.commands]


def command_of_the_tests(markdown: str) -> str:
    """The shell line that installs what the tests need and runs them; LookupError unless one fence is marked."""
    marked = [fence for fence in fences(markdown) if fence.mark == THE_TESTS]
    if len(marked) != 1 or not marked[0].commands:
        raise LookupError(f"README.md must mark exactly one fence with <!-- {THE_TESTS} -->, not {len(marked)}.")
    return " && ".join(command.line for command in marked[0].commands)


if __name__ == "__main__":
    readme = Path(__file__).resolve().parents[2] / "README.md"
    sys.stdout.write(command_of_the_tests(readme.read_text(encoding="utf-8")) + "\n")
