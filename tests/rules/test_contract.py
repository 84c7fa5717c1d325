"""Each rule of the contract has a test that is marked with it, and each mark names a rule."""

from tests.rules.contract import CODES, PAGE, faults, marks_in, rules_in
from tests.rules.modules import Module, modules

RULES = rules_in(PAGE)


def test_each_rule_has_a_test_and_each_mark_a_rule() -> None:
    assert len(RULES) > 200
    held = marks_in(modules("tests"))
    assert list(faults(RULES, {rule: tests for rule, tests in held.items() if rule not in CODES})) == []


def test_a_rule_without_a_test_and_a_mark_without_a_rule_are_found() -> None:
    source = """
@pytest.mark.rule("a.first", "a.gone")
def test_one(): ...

@pytest.mark.parametrize("x", [1, pytest.param(2, marks=pytest.mark.rule("a.case"))])
def test_two(x): ...

@pytest.mark.rule("a.first")
def helper(): ...
"""
    rules = rules_in("# Page\n\n- `a.first`: In words\n- `a.case`: Of a case\n- `a.alone`: Unproved\n")
    assert list(rules) == ["a.first", "a.case", "a.alone"]
    assert list(faults(rules, marks_in([Module("tests.x", source)]))) == [
        "no test is marked with a.alone",
        "tests/x.py::test_one is marked with a.gone, which is no rule",
        "tests/x.py::helper is marked, but no test",
    ]
