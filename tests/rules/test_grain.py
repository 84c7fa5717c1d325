"""Functions that are used once are few: each is a hop that a reader makes for no reuse, unless its name says more."""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.rules.modules import Module, modules

#: Of all functions, the part that may be called once, in their own file alone.
MOST_USED_ONCE = 0.12

#: A function, and whether it is in a "module", a "class" or a "function".
Placed = tuple[ast.FunctionDef | ast.AsyncFunctionDef, str]


def functions(node: ast.AST, place: str = "module") -> Iterator[Placed]:
    """Every function below the node, nested ones too."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child, place
            yield from functions(child, "function")
        else:
            yield from functions(child, "class" if isinstance(child, ast.ClassDef) else place)


def uses(module: Module) -> Counter[str]:
    """How often each name is read, looked up as an attribute or imported; a definition is no use."""
    counted: Counter[str] = Counter()
    for node in module.nodes:
        if isinstance(node, ast.Name):
            counted[node.id] += 1
        elif isinstance(node, ast.Attribute):
            counted[node.attr] += 1
        elif isinstance(node, ast.ImportFrom):
            counted.update(alias.name for alias in node.names)
    return counted


def handed_over(module: Module) -> frozenset[str]:
    """The names of functions that are passed on as values (a callback, a route's handler, a transaction's work)."""
    called = {id(node.func) for node in module.nodes if isinstance(node, ast.Call)}
    names = [node for node in module.nodes if isinstance(node, ast.Name | ast.Attribute) and id(node) not in called]
    return frozenset(node.id if isinstance(node, ast.Name) else node.attr for node in names)


def used_once(modules: Sequence[Module]) -> tuple[list[str], int]:
    """The functions that are private, nested or unknown to other files, and called once; and the number of all.

    A decorator is a use that can't be seen, such as that of a route or a command. What is handed over is no hop for a
    reader: whoever gets it calls it, and Python has no other way to write it.
    """
    by_module = {module.name: uses(module) for module in modules}
    everywhere: Counter[str] = Counter()
    for counted in by_module.values():
        everywhere.update(counted)
    found, total = [], 0
    for module in modules:
        values = handed_over(module)
        for node, place in functions(module.tree):
            total += 1
            if node.name in values:
                continue
            is_private = node.name.startswith("_") and not node.name.startswith("__")
            is_local = place == "module" and everywhere[node.name] == 1 and not node.decorator_list
            if by_module[module.name][node.name] == 1 and (is_private or is_local or place == "function"):
                found.append(f"{module.name}:{node.name}")
    return found, total


def private_once(modules: Sequence[Module]) -> tuple[list[str], int]:
    """The private functions whose name is read once in their own file, handed over or not; and the number of all."""
    found, total = [], 0
    for module in modules:
        names = [node.name for node, _ in functions(module.tree)]
        counted = uses(module)
        found += [f"{module.name}:{name}" for name in names if re.match("_(?!_)", name) and counted[name] == 1]
        total += len(names)
    return found, total


@pytest.mark.parametrize("measure", (used_once, private_once))
def test_few_functions_are_private_and_used_once(measure: Any) -> None:
    found, total = measure(modules())
    assert len(found) / total <= MOST_USED_ONCE, f"{measure.__name__}: {len(found)} of {total}; inline some"


def test_private_nested_and_local_functions_count_when_one_line_calls_them() -> None:
    source = (
        "def _key(): ...\n"
        "def _once(): ...\ndef _twice(): ...\ndef local(): ...\ndef shared(): ...\n@route\ndef served(): ...\n"
        "class Thing:\n    def _step(self): ...\n    def public(self):\n        def inner(): ...\n"
        "        sorted([], key=_key)\n"
        "        return inner(), self._step(), _once(), _twice(), _twice(), local(), shared(), served()\n"
    )
    found, total = used_once([Module("a", source), Module("b", "from a import shared")])
    assert (found, total) == (["a:_once", "a:local", "a:_step", "a:inner"], 9)
    assert private_once([Module("a", source)]) == (["a:_key", "a:_once", "a:_step"], 9)
