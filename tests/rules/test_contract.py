"""The table of the contract tells the truth."""

from svc_daemon.api.app import ENDPOINTS
from svc_daemon.wire.codes import ErrorCode
from tests.rules.contracts import Rule, missing_tests, rules_in, shape
from tests.rules.modules import ROOT, modules
from tests.rules.raised import codes_raised

RULES = rules_in((ROOT / "tests" / "contract.md").read_text(encoding="utf-8"))


def test_every_test_that_holds_a_rule_is_there() -> None:
    assert len(RULES) > 150
    assert list(missing_tests(RULES)) == []


def test_what_is_not_built_yet_is_not_served() -> None:
    served = {shape(row.method, row.path) for row in ENDPOINTS}
    assert [rule.text for rule in RULES if not rule.is_built and rule.route in served] == []


def test_what_is_not_built_yet_is_not_raised() -> None:
    raised = codes_raised(modules("svc_daemon"))
    waiting = [rule.code for rule in RULES if not rule.is_built and rule.code]
    assert [code for code in waiting if ErrorCode(code) in raised] == []


def test_a_test_that_is_not_there_is_told() -> None:
    held = "`tests/rules/test_contract.py::test_a_test_that_is_not_there_is_told`"
    here, gone = Rule("here", held), Rule("gone", held.replace("told`", "tol`"))
    assert list(missing_tests([here, gone, Rule("none", "somewhere"), Rule("later", "not built yet: x")])) == [
        "gone: there is no tests/rules/test_contract.py::test_a_test_that_is_not_there_is_tol",
        "none: no test is named",
    ]


def test_a_row_is_read() -> None:
    rows = "| `GET /v1/x/{id}`: shows | not built yet: x |\n| `no_code` | `tests/a.py::test_b` |"
    route, code = rules_in(f"| rule | held by |\n| --- | --- |\n{rows}")
    assert (route.route, route.code, route.is_built) == ("GET /v1/x/{}", None, False)
    assert (code.route, code.code, code.tests) == (None, "no_code", [("tests/a.py", "test_b")])
