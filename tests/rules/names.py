"""Every name that a user may type or meet: commands, environment variables, error codes, and links between pages."""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.rules.modules import PACKAGES, Module

_VARIABLE = re.compile(r"SVC_[A-Z][A-Z_]*[A-Z]")

_CODE = re.compile(r"svc_[a-z_]+")
_LINK = re.compile(r"\]\((?![a-z]+:)([^)#\s]*)(?:#([^)\s]+))?\)")


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


def dead_links(page: Path) -> list[str]:
    """The links of a page that lead to no file of the repository, or to no heading of one."""
    return [link[0] for link in _LINK.finditer(page.read_text(encoding="utf-8")) if not _leads_somewhere(page, link)]


def _leads_somewhere(page: Path, link: re.Match[str]) -> bool:
    target, anchor = page.parent / link[1] if link[1] else page, link[2]
    return target.exists() and (not anchor or anchor in _anchors(target))


def _anchors(page: Path) -> set[str]:
    """Headings as GitHub names them in links."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _strings(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
