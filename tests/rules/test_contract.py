"""The table of the contract is true: which rule is held by which tests, and which isn't built yet."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from svc_daemon.api.app import ENDPOINTS
from svc_daemon.wire.error_codes import ErrorCode
from tests.rules.modules import ROOT, modules
from tests.rules.raised import codes_raised

_ROW = re.compile(r"\| (?P<rule>.+) \| (?P<held>[^|]+) \|")
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
_CODE = re.compile(r"`([a-z_]+)`")
_ROUTE = re.compile(r"`((?:GET|POST|PUT|PATCH|DELETE) /[^`]+)`.*")


@dataclass(frozen=True, slots=True)
class Rule:
    text: str
    held_by: str

    @property
    def is_built(self) -> bool:
        return not self.held_by.startswith("not built yet")

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
        return re.sub(r"{\w+}", "{}", match[1]) if match else None


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
            file, found = ROOT / path, re.compile(rf"^(async )?def {name}\(", re.MULTILINE)
            if not file.exists() or not found.search(file.read_text(encoding="utf-8")):
                yield f"{rule.text}: there is no {path}::{name}"


RULES = rules_in((ROOT / "tests" / "contract.md").read_text(encoding="utf-8"))


def test_every_test_that_holds_a_rule_is_there() -> None:
    assert len(RULES) > 150
    assert list(missing_tests(RULES)) == []


def test_what_is_not_built_yet_is_neither_served_nor_raised() -> None:
    served = {re.sub(r"{\w+}", "{}", f"{row.method} {row.path}") for row in ENDPOINTS}
    raised, waiting = codes_raised(modules("svc_daemon")), [rule for rule in RULES if not rule.is_built]
    assert [rule.text for rule in waiting if rule.route in served] == []
    assert [rule.code for rule in waiting if rule.code and ErrorCode(rule.code) in raised] == []


def test_a_row_is_read_and_a_test_that_is_not_there_is_found() -> None:
    held = "`tests/rules/test_contract.py::test_a_row_is_read_and_a_test_that_is_not_there_is_found`"
    here, gone = Rule("here", held), Rule("gone", held.replace("found`", "lost`"))
    assert list(missing_tests([here, gone, Rule("none", "somewhere"), Rule("later", "not built yet: x")])) == [
        "gone: there is no tests/rules/test_contract.py::test_a_row_is_read_and_a_test_that_is_not_there_is_lost",
        "none: no test is named",
    ]
    rows = "| `GET /v1/x/{id}`: shows | not built yet: x |\n| `no_code` | `tests/a.py::test_b` |"
    route, code = rules_in(f"| rule | held by |\n| --- | --- |\n{rows}")
    assert (route.route, route.code, route.is_built) == ("GET /v1/x/{}", None, False)
    assert (code.route, code.code, code.tests) == (None, "no_code", [("tests/a.py", "test_b")])
