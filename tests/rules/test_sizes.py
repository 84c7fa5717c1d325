"""Functions and files stay short enough to be read at once, and functions that are used once are few."""

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.rules.modules import ROOT, Module, modules

#: Lines that nothing may exceed, and lines that nine of ten must keep to.
LONGEST_FUNCTION, USUAL_FUNCTION = 40, 25
LONGEST_FILE, USUAL_FILE = 400, 350
#: Modules that a folder may have, `__init__` not counted.
FULLEST_FOLDER = 15
#: Names that show nothing of what a module owns.
EMPTY_NAMES = {"util", "utils", "helper", "helpers", "common", "misc", "manager", "managers", "base"}

ALL = modules("svc_daemon", "svc_cli", "tests")


def function_sizes(*modules: Module) -> list[tuple[str, int]]:
    """Each function with its lines, from `def` to its last line; a nested one counts by itself too."""
    return [
        (f"{module.name}:{node.name}", (node.end_lineno or node.lineno) - node.lineno + 1)
        for module in modules
        for node in module.nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def too_long(sizes: Sequence[tuple[str, int]], longest: int, usual: int) -> list[str]:
    """A sentence for what is over the limit, and one if more than one in ten are over the usual length."""
    share = sum(lines <= usual for _, lines in sizes) / len(sizes)
    found = [f"{name} has {lines} lines" for name, lines in sizes if lines > longest]
    return found if share >= 0.9 else [*found, f"only {share:.0%} have at most {usual} lines"]


def empty_names(*modules: Module) -> list[str]:
    return [module.name for module in modules if module.name.rpartition(".")[2] in EMPTY_NAMES]


def test_functions_and_files_keep_to_their_lengths() -> None:
    assert too_long(function_sizes(*ALL), LONGEST_FUNCTION, USUAL_FUNCTION) == []
    files = [(module.name, len(module.source.splitlines())) for module in ALL]
    assert too_long(files, LONGEST_FILE, USUAL_FILE) == []


def full_folders(*modules: Module) -> dict[str, int]:
    """The folders with more modules than a folder may have."""
    counted = Counter(module.name.rpartition(".")[0] for module in modules if not module.is_package)
    return {folder: count for folder, count in counted.items() if count > FULLEST_FOLDER}


def test_no_folder_has_too_many_modules() -> None:
    assert full_folders(*modules()) == {}


def test_a_folder_with_too_many_modules_is_found() -> None:
    many = [Module(f"a.b.module{number}", "") for number in range(FULLEST_FOLDER + 1)]
    assert (full_folders(*many), full_folders(*many[1:], Module("a.b", "", is_package=True))) == ({"a.b": 16}, {})


def test_ruff_holds_the_complexity_at_ten() -> None:
    lint = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]
    assert "C90" in lint["select"]
    assert lint["mccabe"]["max-complexity"] <= 10


def test_each_module_is_named_for_what_it_owns() -> None:
    assert empty_names(*ALL) == []
    assert empty_names(Module("svc_daemon.utils", ""), Module("svc_daemon.chunks", "")) == ["svc_daemon.utils"]


def test_what_is_too_long_is_found() -> None:
    source = "@decorated\ndef outer():\n    def inner():\n        return 1\n\n    return inner\n"
    assert function_sizes(Module("sample", source)) == [("sample:outer", 5), ("sample:inner", 2)]
    source = "async def long():\n" + "    work()\n" * LONGEST_FUNCTION
    sizes = [*function_sizes(Module("sample", source)), ("usual", 25)]
    assert too_long(sizes, LONGEST_FUNCTION, 25) == ["sample:long has 41 lines", "only 50% have at most 25 lines"]


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
