"""Which entries of a folder its `.gitignore` and `.svcignore` files leave out, by git's own rules."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pathspec

#: Read in this order: what `.svcignore` says comes later and wins.
IGNORE_FILES = (".gitignore", ".svcignore")


class Layer(NamedTuple):
    """The rules of one file, or of the command line."""

    #: Length of the path of the folder that they speak of: what is matched stands behind it.
    behind: int
    spec: pathspec.GitIgnoreSpec
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
            if spec := _read(folder / name):
                rules = rules.under(folder, spec, str(folder / name))
        return rules

    def under(self, folder: Path, spec: pathspec.GitIgnoreSpec, origin: str) -> "IgnoreRules":
        """These rules, and others that speak of what is inside `folder`."""
        behind = len(str(folder).rstrip(os.sep)) + 1
        return IgnoreRules((*self.layers, Layer(behind, spec, origin)))

    def ignores(self, path: str, *, is_folder: bool) -> bool:
        """Whether the last rule that speaks of this absolute path ignores it."""
        verdict = False
        for behind, spec, _ in self.layers:
            said = spec.check_file(_relative(path, behind, is_folder=is_folder)).include
            verdict = verdict if said is None else said
        return verdict

    def find_rule(self, path: str, *, is_folder: bool) -> tuple[str, str] | None:
        """Where the last rule that speaks of the path comes from, and its pattern."""
        for behind, spec, origin in reversed(self.layers):
            index = spec.check_file(_relative(path, behind, is_folder=is_folder)).index
            if index is not None:
                return origin, str(spec.patterns[index].pattern)
        return None


def _relative(path: str, behind: int, *, is_folder: bool) -> str:
    relative = path[behind:] if os.sep == "/" else path[behind:].replace(os.sep, "/")
    return f"{relative}/" if is_folder else relative


def rules_above(folder: Path) -> IgnoreRules:
    """The rules that reach `folder` from its repository's root: git's files up to the folder that holds `.git`."""
    root = _repository_root(folder)
    rules = IgnoreRules()
    if root is None or root == folder:
        return rules
    for parent in reversed(folder.parents):
        if parent == root or root in parent.parents:
            rules = rules.inside(parent)
    return rules


def _repository_root(folder: Path) -> Path | None:
    return next((parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), None)


def _read(path: Path) -> pathspec.GitIgnoreSpec | None:
    try:
        if not path.is_file():  # a pipe of that name would be waited for
            return None
        lines = path.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return None
    return pathspec.GitIgnoreSpec.from_lines(lines)
