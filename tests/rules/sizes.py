"""How long functions and files may be, and how a module may be called."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.rules.modules import Module

#: Lines that nothing may exceed.
LONGEST_FUNCTION = 40
LONGEST_FILE = 400
#: Lines that nine of ten must keep to.
USUAL_FUNCTION = 25
USUAL_FILE = 350

#: Names that say nothing about what a module owns.
EMPTY_NAMES = {"util", "utils", "helper", "helpers", "common", "misc", "manager", "managers", "base"}


@dataclass(frozen=True, slots=True)
class Size:
    """Something with a number of lines."""

    name: str
    lines: int


def function_sizes(module: Module) -> Iterator[Size]:
    """Each function and method, from `def` to its last line; a nested one counts by itself too."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            last = node.end_lineno or node.lineno
            yield Size(f"{module.name}:{node.name}", last - node.lineno + 1)


def file_size(module: Module) -> Size:
    return Size(module.name, len(module.source.splitlines()))


def too_long(sizes: Sequence[Size], longest: int) -> list[str]:
    """Names, with their lines, of what is over the limit."""
    return [f"{size.name} has {size.lines} lines" for size in sizes if size.lines > longest]


def share_within(sizes: Sequence[Size], usual: int) -> float:
    """The part, 0 to 1, that keeps to the usual length."""
    return sum(size.lines <= usual for size in sizes) / len(sizes) if sizes else 1.0


def has_empty_name(module: Module) -> bool:
    return module.name.rpartition(".")[2] in EMPTY_NAMES
