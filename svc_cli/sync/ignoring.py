"""Which rule leaves a path out of a folder's sync, as its name and the ignore files have it."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from svc_cli.errors import UsageError
from svc_cli.sync.snapshots import first_rules
from svc_cli.uploads.skips import reason_by_name


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of one path by name; what is in the file is not looked at."""

    path: str
    is_ignored: bool
    #: `dotfile`, `link`, `ignored`, or what is wrong with the name.
    reason: str | None = None
    #: The part of the path that the rule speaks of: a folder that is left out takes along what is in it.
    at: str | None = None
    #: The ignore file, and its pattern; of an exception too.
    origin: str | None = None
    pattern: str | None = None


def explain(root: Path, path: str, exclude: Sequence[str] = ()) -> Verdict:
    """Follow a path from the root down, as a sync does. Raises UsageError for one outside of the root."""
    base = Path(os.path.normpath(root.absolute()))
    full = Path(os.path.normpath(Path(path).absolute()))
    if base not in full.parents:
        raise UsageError(f"{path} is not inside {base}.", hint="name the folder that is synced with --root.")
    rules, folder = first_rules(base, exclude), base
    verdict = Verdict(path, is_ignored=False)
    for name in full.relative_to(base).parts:
        rules, here = rules.inside(folder), folder / name
        is_folder = here != full or here.is_dir() or path.endswith("/")
        at = here.relative_to(base).as_posix() + ("/" if is_folder else "")
        reason = reason_by_name(name, str(here), rules, is_folder=is_folder)
        rule = None if reason == "dotfile" else rules.find(str(here), is_folder=is_folder)
        origin, pattern = (rule[0], rule[1].text) if rule else (None, None)
        if reason is not None:
            return Verdict(path, is_ignored=True, reason=reason, at=at, origin=origin, pattern=pattern)
        if here.is_symlink():
            return Verdict(path, is_ignored=True, reason="link", at=at)
        verdict = Verdict(path, is_ignored=False, at=at, origin=origin, pattern=pattern)
        folder = here
    return verdict
