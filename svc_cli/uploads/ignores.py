"""Which entries of a folder its `.gitignore` and `.svcignore` files leave out, by git's own rules."""

import os
from dataclasses import dataclass
from pathlib import Path

import pathspec

#: Read in this order: what `.svcignore` says comes later and wins.
IGNORE_FILES = (".gitignore", ".svcignore")


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The rules in force inside one folder: those of the folders above first, its own last."""

    #: Pairs of (length of the path of the folder that holds the file, its rules): what is matched stands behind it.
    layers: tuple[tuple[int, pathspec.GitIgnoreSpec], ...] = ()

    def inside(self, folder: Path) -> "IgnoreRules":
        """The rules one folder deeper, with its own ignore files added. `folder` is absolute."""
        own = tuple(spec for name in IGNORE_FILES if (spec := _read(folder / name)))
        return self.under(folder, *own) if own else self

    def under(self, folder: Path, *specs: pathspec.GitIgnoreSpec) -> "IgnoreRules":
        """These rules, and others that speak of what is inside `folder`."""
        behind = len(str(folder).rstrip(os.sep)) + 1
        return IgnoreRules(self.layers + tuple((behind, spec) for spec in specs))

    def ignores(self, path: str, *, is_folder: bool) -> bool:
        """Whether the last rule that speaks of this absolute path ignores it."""
        verdict = False
        for behind, spec in self.layers:
            relative = path[behind:] if os.sep == "/" else path[behind:].replace(os.sep, "/")
            said = spec.check_file(f"{relative}/" if is_folder else relative).include
            verdict = verdict if said is None else said
        return verdict


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
