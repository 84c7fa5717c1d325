"""Which functions are used once, in their own file alone: each is a hop that a reader makes for no reuse."""

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.rules.modules import Module


@dataclass(frozen=True, slots=True)
class Function:
    """A function or method and where it stands."""

    name: str
    #: "module", "class" or "function".
    place: str
    is_decorated: bool


def functions(node: ast.AST, place: str = "module") -> Iterator[Function]:
    """Every function below the node, nested ones too."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield Function(child.name, place, bool(child.decorator_list))
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
        for function in functions(module.tree):
            total += 1
            is_private = function.name.startswith("_") and not function.name.startswith("__")
            is_local = function.place == "module" and everywhere[function.name] == 1 and not function.is_decorated
            if by_module[module.name][function.name] == 1 and (is_private or is_local or function.place == "function"):
                found.append(f"{module.name}:{function.name}")
    return found, total
