"""The rules of `tests/contract.md` and the error codes, each with its marked tests; as a program it prints them."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from svc_daemon.wire.light.error_codes import ErrorCode
from tests.rules.modules import ROOT, Module, modules

_RULE = re.compile(r"- `(?P<id>[\w.-]+)`: (?P<words>.+)")
CODES = {code.value for code in ErrorCode}


def rules_in(page: str) -> dict[str, str]:
    """Each listed rule in words by its id."""
    return {row["id"]: row["words"] for line in page.splitlines() if (row := _RULE.fullmatch(line))}


def marks_in(tests: Iterable[Module]) -> dict[str, list[str]]:
    """The tests that hold each rule, by its id; a mark may be on a test or on one case of it."""
    held = defaultdict(list)
    # Parsing the others takes seconds.
    for module in (each for each in tests if "pytest.mark.rule" in each.source):
        for test in module.nodes:
            if isinstance(test, ast.FunctionDef | ast.AsyncFunctionDef):
                for rule in _marked(test):
                    held[rule].append(f"{module.name.replace('.', '/')}.py::{test.name}")
    return held


def _marked(test: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    for node in (node for decorator in test.decorator_list for node in ast.walk(decorator)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.rule":
            yield from (ast.literal_eval(argument) for argument in node.args)


def faults(rules: Iterable[str], held: dict[str, list[str]]) -> Iterator[str]:
    """A sentence for each rule without a test, and for each mark that isn't of a rule or not on a test."""
    yield from (f"no test is marked with {rule}" for rule in rules if rule not in held)
    yield from (f"{held[rule][0]} is marked with {rule}, which is no rule" for rule in held if rule not in rules)
    names = {test for tests in held.values() for test in tests if "::test_" not in test}
    yield from (f"{name} is marked, but no test" for name in sorted(names))


PAGE = (ROOT / "tests" / "contract.md").read_text(encoding="utf-8")


def main() -> None:
    held = marks_in(modules("tests"))
    for line in PAGE.splitlines():
        print(line)
        if row := _RULE.fullmatch(line):
            print(*(f"  - {test}" for test in held[row["id"]]), sep="\n")
    print("\n## Error codes\n")
    for code in sorted(CODES & held.keys()):
        print(f"- `{code}`", *(f"  - {test}" for test in held[code]), sep="\n")


if __name__ == "__main__":
    main()
