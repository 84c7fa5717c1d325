"""Functions that are used once are few: each is a hop that a reader makes for no reuse, unless its name says more."""

import ast
from collections import Counter
from collections.abc import Iterator, Sequence

from tests.rules.modules import Module, modules

#: Of all functions, the part that may be used once in their own file alone. The design asks for 0.12.
MOST_USED_ONCE = 0.15

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


def uses(tree: ast.AST) -> Counter[str]:
    """How often each name is read, looked up as an attribute or imported; a definition is no use."""
    counted: Counter[str] = Counter()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            counted[node.id] += 1
        elif isinstance(node, ast.Attribute):
            counted[node.attr] += 1
        elif isinstance(node, ast.ImportFrom):
            counted.update(alias.name for alias in node.names)
    return counted


def used_once(modules: Sequence[Module]) -> tuple[list[str], int]:
    """The functions that are private, nested or unknown to other files, and used once; and the number of all.

    A decorator is a use that can't be seen, such as that of a route or a command.
    """
    by_module = {module.name: uses(module.tree) for module in modules}
    everywhere = sum(by_module.values(), Counter[str]())
    found, total = [], 0
    for module in modules:
        for node, place in functions(module.tree):
            total += 1
            is_private = node.name.startswith("_") and not node.name.startswith("__")
            is_local = place == "module" and everywhere[node.name] == 1 and not node.decorator_list
            if by_module[module.name][node.name] == 1 and (is_private or is_local or place == "function"):
                found.append(f"{module.name}:{node.name}")
    return found, total


def test_few_functions_are_private_and_used_once() -> None:
    found, total = used_once(modules())
    assert len(found) / total <= MOST_USED_ONCE, f"{len(found)} of {total}; inline some, or raise what they are worth"


def test_private_nested_and_local_functions_count_when_one_line_uses_them() -> None:
    source = (
        "def _once(): ...\ndef _twice(): ...\ndef local(): ...\ndef shared(): ...\n@route\ndef served(): ...\n"
        "class Thing:\n    def _step(self): ...\n    def public(self):\n        def inner(): ...\n"
        "        return inner(), self._step(), _once(), _twice(), _twice(), local(), shared(), served()\n"
    )
    found, total = used_once([Module("a", source), Module("b", "from a import shared")])
    assert (found, total) == (["a:_once", "a:local", "a:_step", "a:inner"], 8)
