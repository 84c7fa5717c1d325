"""Which entries of a folder its `.gitignore` and `.svcignore` files leave out, by git's own rules."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from svc_cli.uploads.patterns import Patterns

#: Read in this order: what `.svcignore` says comes later and wins.
IGNORE_FILES = (".gitignore", ".svcignore")


class Layer(NamedTuple):
    """The rules of one file, or of the command line."""

    #: Length of the path of the folder that they speak of: what is matched stands behind it.
    behind: int
    patterns: Patterns
    #: The file, or what else gave them.
    origin: str


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The rules in force inside one folder: those of the folders above first, its own last."""

    layers: tuple[Layer, ...] = ()

    def inside(self, folder: Path) -> "IgnoreRules":
        """The rules one folder deeper, with its own ignore files added. `folder` is absolute."""
        rules = self
        for name in IGNORE_FILES:
            if patterns := _read(folder / name):
                rules = rules.under(folder, patterns, str(folder / name))
        return rules

    def under(self, folder: Path, patterns: Patterns, origin: str) -> "IgnoreRules":
        """These rules, and others that speak of what is inside `folder`."""
        behind = len(str(folder).rstrip(os.sep)) + 1
        return IgnoreRules((*self.layers, Layer(behind, patterns, origin)))

    def ignores(self, path: str, *, is_folder: bool) -> bool:
        """Whether the last rule that speaks of this absolute path ignores it."""
        for behind, patterns, _ in reversed(self.layers):
            found = patterns.find(_relative(path, behind), is_folder=is_folder)
            if found is not None:
                return not found.keeps
        return False

    def find_rule(self, path: str, *, is_folder: bool) -> tuple[str, str] | None:
        """Where the last rule that speaks of the path comes from, and its pattern."""
        for behind, patterns, origin in reversed(self.layers):
            found = patterns.find(_relative(path, behind), is_folder=is_folder)
            if found is not None:
                return origin, found.text
        return None


def _relative(path: str, behind: int) -> str:
    return path[behind:] if os.sep == "/" else path[behind:].replace(os.sep, "/")


def rules_above(folder: Path) -> IgnoreRules:
    """The rules that reach `folder` from its repository's root: git's files up to the folder that holds `.git`.

    Where they ignore the folder itself, or one around it, they ignore all that is in it.
    """
    root = find_repository(folder)
    rules = IgnoreRules()
    if root is None or root == folder:
        return rules
    within = [parent for parent in reversed(folder.parents) if parent == root or root in parent.parents]
    for parent, child in zip(within, [*within[1:], folder], strict=True):
        rules = rules.inside(parent)
        if rules.ignores(str(child), is_folder=True):
            origin, _ = rules.find_rule(str(child), is_folder=True) or ("", "")
            return rules.under(folder, Patterns(["*"]), origin)
    return rules


def find_repository(folder: Path) -> Path | None:
    """The root of the repository that the folder is in: the nearest that holds `.git`."""
    return next((parent for parent in (folder, *folder.parents) if _is_there(parent / ".git")), None)


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # in a folder that nobody may look into; listing it reports that
        return False


def _read(path: Path) -> Patterns | None:
    try:
        if not path.is_file():  # a pipe of that name would be waited for
            return None
        text = path.read_bytes().decode("utf-8", errors="replace")
    except OSError:
        return None
    return Patterns.parse(text)
