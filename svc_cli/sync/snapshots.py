"""The folder as it is on the disk: one streamed walk, entry by entry, with what was left out and why.

A walk tells whether it was complete: where a folder could not be listed, nobody may conclude that its files are gone.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from svc_cli.errors import FileRefused
from svc_cli.sync.scopes import Scope
from svc_cli.uploads.ignores import IgnoreRules, Patterns, rules_above
from svc_cli.uploads.skips import (
    SPELLED_TWICE,
    Skip,
    Titles,
    composed,
    leads_to_folder,
    reason_by_facts,
    reason_by_name,
)


class Fingerprint(NamedTuple):
    """What the file system says of a file; while all of it is the same, the bytes are."""

    size_bytes: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    device: int

    @classmethod
    def of(cls, facts: os.stat_result) -> "Fingerprint":
        return cls(facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino, facts.st_dev)


class Entry(NamedTuple):
    """A file that sync looks after."""

    #: Below the root, `/` between its parts, composed (NFC): the title of its source.
    path: str
    #: The same as the file system spells it.
    raw: str
    fingerprint: Fingerprint


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Which files of the folder a mapping takes."""

    #: Patterns in the style of `.gitignore`; where there are any, only files that match one are taken.
    include: tuple[str, ...] = ()
    #: Left out besides what the ignore files name.
    exclude: tuple[str, ...] = ()
    follow_links: bool = False
    #: Larger files are refused by the service.
    max_bytes: int
    #: Longer paths can't be titles.
    max_path_characters: int


class _Folder(NamedTuple):
    """A folder on the way: what stands before its entries' names, the rules of its parent, the folders around it."""

    prefix: str
    above: IgnoreRules
    #: Real paths of the folders that hold a link on the way here, and of those that they lead to.
    linked: tuple[str, ...] = ()


class Snapshot:
    """One walk over a folder, to be iterated once; what was left out stands in `skips` as it is met."""

    def __init__(self, root: Path, filters: Filters, scope: Scope | None = None) -> None:
        """A walk over all of `root`, or over a part of it."""
        self.skips: list[Skip] = []
        #: False once something could not be listed.
        self.is_complete = True
        self._root = root.absolute()
        self._base = f"{str(self._root).rstrip(os.sep)}{os.sep}"
        self._filters = filters
        self._scope = scope
        self._included = Patterns(filters.include) if filters.include else None
        self._titles = Titles()

    def __iter__(self) -> Iterator[Entry]:
        """Walk with a stack of its own, since a tree may be deeper than Python's; a folder's files before its folders.

        Raises FileRefused where the root itself may not be listed, OSError where that fails otherwise.
        """
        try:
            os.scandir(self._root).close()
        except PermissionError as error:
            raise FileRefused(f"{self._root} can't be read: {error.strerror}.", code="svc_file_unreadable") from error
        waiting = [_Folder("", self._first_rules())]
        while waiting:
            deeper: list[_Folder] = []
            yield from self._look_into(waiting.pop(), deeper)
            waiting.extend(reversed(deeper))

    def _first_rules(self) -> IgnoreRules:
        return first_rules(self._root, self._filters.exclude)

    def _look_into(self, folder: _Folder, deeper: list[_Folder]) -> Iterator[Entry]:
        """The files of one folder; its folders go to `deeper`."""
        rules = folder.above.inside(Path(self._base + folder.prefix))
        for found in self._list(folder.prefix):
            raw = folder.prefix + found.name
            if self._scope is not None and not self._scope.leads_to(composed(raw)):
                continue
            is_folder, linked = found.is_dir(follow_symlinks=False), folder.linked
            is_link = found.is_symlink()
            if is_link:
                here, target = os.path.realpath(self._base + folder.prefix), os.path.realpath(self._base + raw)
                linked, is_folder = (*folder.linked, here, target), leads_to_folder(Path(target))
            reason = self._reason_by_name(found.name, raw, rules, is_folder=is_folder)
            if reason is None and is_link:
                reason = self._reason_of_link(linked[-1], linked[:-1])
            if reason is not None:
                self._skip(raw, reason, is_folder=is_folder)
            elif is_folder:
                deeper.append(_Folder(raw + os.sep, rules, linked))
            else:
                entry = self._take(found, raw)
                if entry is not None:
                    yield entry

    def _list(self, prefix: str) -> list["os.DirEntry[str]"]:
        """The entries by name; a folder that can't be listed is told, and that the walk is not complete."""
        try:
            with os.scandir(self._base + prefix) as entries:
                return sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            self.is_complete = False
            self.skips.append(Skip.unreadable(self._titles.name(prefix.rstrip(os.sep)) + "/", error))
            return []

    def _reason_by_name(self, name: str, raw: str, rules: IgnoreRules, *, is_folder: bool) -> str | None:
        if reason := reason_by_name(name, self._base + raw, rules, is_folder=is_folder):
            return reason
        if is_folder or self._included is None or self._included.covers(raw):
            return None
        return "not included"

    def _reason_of_link(self, target: str, around: tuple[str, ...]) -> str | None:
        """A link is followed only where that was asked for, below the root, and never in a circle.

        `around` are the real paths of the folders that lead here.
        """
        if not self._filters.follow_links:
            return "link"
        if not _is_within(target, os.path.realpath(self._root)):
            return "link out of the folder"
        if any(_is_within(folder, target) for folder in around):
            return "link in a circle"
        try:
            return None if Path(target).exists() else "link leads nowhere"
        except OSError:  # nobody may look; reading it reports that
            return None

    def _take(self, found: "os.DirEntry[str]", raw: str) -> Entry | None:
        """The file as an entry, unless its state says otherwise."""
        try:
            facts = found.stat(follow_symlinks=self._filters.follow_links)
        except FileNotFoundError:
            return None  # gone since the folder was listed
        except OSError as error:
            self.is_complete = False  # it may be any file that is missed elsewhere
            self.skips.append(Skip.unreadable(self._titles.name(raw), error))
            return None
        path = raw if raw.isascii() else composed(raw)
        limits = self._filters.max_bytes, self._filters.max_path_characters
        if (reason := reason_by_facts(path, facts, *limits)) is not None:
            self._skip(raw, reason)
        elif self._titles.name(raw) != path:
            self._skip(raw, SPELLED_TWICE)
        else:
            return Entry(path, raw, Fingerprint.of(facts))
        return None

    def _skip(self, raw: str, reason: str, *, is_folder: bool = False) -> None:
        self.skips.append(Skip(self._titles.name(raw) + ("/" if is_folder else ""), reason))


def first_rules(root: Path, exclude: Sequence[str]) -> IgnoreRules:
    """The rules that reach a folder from outside; its own ignore files come behind them."""
    rules = rules_above(root)
    return rules.under(root, Patterns(exclude), "exclude") if exclude else rules


def _is_within(path: str, folder: str) -> bool:
    return f"{path}{os.sep}".startswith(f"{folder.rstrip(os.sep)}{os.sep}")
