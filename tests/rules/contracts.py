"""The table of the contract: which rule is held by which tests, and which isn't built yet."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.rules.modules import ROOT

NOT_BUILT = "not built yet"

_ROW = re.compile(r"\| (?P<rule>.+) \| (?P<held>[^|]+) \|")
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
_CODE = re.compile(r"`([a-z_]+)`")
_ROUTE = re.compile(r"`(GET|POST|PUT|PATCH|DELETE) (/[^`]+)`.*")


@dataclass(frozen=True, slots=True)
class Rule:
    """One row."""

    text: str
    held_by: str

    @property
    def is_built(self) -> bool:
        return not self.held_by.startswith(NOT_BUILT)

    @property
    def tests(self) -> list[tuple[str, str]]:
        """File and name of each test."""
        return _TEST.findall(self.held_by)

    @property
    def code(self) -> str | None:
        """The error code that the rule is about, where it is one."""
        match = _CODE.fullmatch(self.text)
        return match[1] if match else None

    @property
    def route(self) -> str | None:
        """Method and path, with its parameters nameless, where the rule is about a route."""
        match = _ROUTE.fullmatch(self.text)
        return shape(match[1], match[2]) if match else None


def shape(method: str, path: str) -> str:
    return method + " " + re.sub(r"{\w+}", "{}", path)


def rules_in(page: str) -> list[Rule]:
    """Every row below a heading of a table."""
    rows = (_ROW.fullmatch(line) for line in page.splitlines())
    return [Rule(row["rule"], row["held"]) for row in rows if row and row["rule"] not in ("rule", "---")]


def missing_tests(rules: list[Rule]) -> Iterator[str]:
    """A sentence for each rule that names no test, or one that isn't there."""
    for rule in rules:
        if rule.is_built and not rule.tests:
            yield f"{rule.text}: no test is named"
        for path, name in rule.tests:
            file = ROOT / path
            if not file.exists() or not re.search(rf"^def {name}\(", file.read_text(encoding="utf-8"), re.MULTILINE):
                yield f"{rule.text}: there is no {path}::{name}"
