"""Which entries of a folder its `.gitignore` and `.svcignore` files leave out, by git's own rules."""

from dataclasses import dataclass
from pathlib import Path

import pathspec

#: Read in this order: what `.svcignore` says comes later and wins.
IGNORE_FILES = (".gitignore", ".svcignore")


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The rules in force inside one folder: those of the folders above first, its own last."""

    #: Pairs of (folder that holds the file, its rules); paths are matched relative to that folder.
    layers: tuple[tuple[Path, pathspec.GitIgnoreSpec], ...] = ()

    def inside(self, folder: Path) -> "IgnoreRules":
        """The rules one folder deeper, with its own ignore files added."""
        own = tuple((folder, spec) for name in IGNORE_FILES if (spec := _read(folder / name)))
        return IgnoreRules(self.layers + own) if own else self

    def ignores(self, path: Path, *, is_folder: bool) -> bool:
        """Whether the last rule that speaks of this path ignores it."""
        verdict = False
        for folder, spec in self.layers:
            relative = path.relative_to(folder).as_posix()
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
    if not path.is_file():  # a pipe of that name would be waited for
        return None
    try:
        lines = path.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return None
    return pathspec.GitIgnoreSpec.from_lines(lines)
