"""Every name that a user may type or meet: commands, environment variables, error codes."""

import ast
import re
from collections.abc import Iterable, Iterator

from tests.rules.modules import PACKAGES, Module

_VARIABLE = re.compile(r"SVC_[A-Z][A-Z_]*[A-Z]")

_CODE = re.compile(r"svc_[a-z_]+")


def variables_in(modules: Iterable[Module]) -> set[str]:
    """Environment variables of ours that stand as whole strings in the code."""
    return {text for module in modules for text in _strings(module) if _VARIABLE.fullmatch(text)}


def codes_in(modules: Iterable[Module]) -> set[str]:
    """Error codes of the command line's own that stand as whole strings in the code."""
    return {text for module in modules for text in _strings(module) if _CODE.fullmatch(text)} - set(PACKAGES)


def variables_named(page: str) -> set[str]:
    """Environment variables of ours that a page names."""
    return set(_VARIABLE.findall(page))


def missing(names: Iterable[str], page: str) -> list[str]:
    """The names that a page does not have as code, between backquotes."""
    return sorted(name for name in names if not re.search(rf"`{re.escape(name)}[ `]", page))


def _strings(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
