"""Functions and files stay short enough to be read at once, and a module's name shows what it owns."""

import ast
import tomllib
from collections import Counter
from collections.abc import Sequence

from tests.rules.modules import ROOT, Module, modules

#: Lines that nothing may exceed, and lines that nine of ten must keep to.
LONGEST_FUNCTION, USUAL_FUNCTION = 40, 25
LONGEST_FILE, USUAL_FILE = 400, 350
#: Modules that a folder may have, `__init__` not counted, and the folders that have more: these numbers may only fall.
FULLEST_FOLDER = 15
FULLER_FOLDERS = {
    "svc_daemon.wire": 29,
    "svc_daemon.api.handlers": 21,
    "svc_daemon.store.rows": 19,
    "svc_daemon.provider.embedded": 17,
    "svc_daemon.core.text": 16,
    "svc_cli": 16,
    "svc_cli.client": 16,
}
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
    assert full_folders(*modules()) == FULLER_FOLDERS


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
