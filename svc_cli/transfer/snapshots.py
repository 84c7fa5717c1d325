"""Walks a folder, yields its files, and records which files were left out and whether everything could be read."""

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from svc_cli.errors import UNFORESEEN, FileRefused, UsageError
from svc_cli.given_files import resolved
from svc_cli.transfer.contents import Fingerprint
from svc_cli.transfer.ignores import (
    IGNORE_FILES,
    IgnoreRules,
    Patterns,
    has_twins,
    inherit,
    rules_above,
    spellings,
)
from svc_cli.transfer.rooted_files import LIST, Root, is_link
from svc_cli.transfer.skips import (
    SPELLED_TWICE,
    Skip,
    Titles,
    composed,
    is_empty,
    leads_to_folder,
    reason_by_facts,
    reason_by_name,
)


class Entry(NamedTuple):
    """A file to sync."""

    #: The path relative to the root, in Unicode NFC; also the source's title.
    path: str
    #: The path relative to the root, as the file system spells it, with `/` on each system.
    raw: str
    fingerprint: Fingerprint
    #: The path to open, relative to the root: `raw` with the links in it resolved.
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Selects the files of a folder that a mapping includes."""

    #: Patterns as in `.gitignore`; if there are any, only files that match one are included.
    include: tuple[str, ...] = ()
    #: Patterns of files to leave out.
    exclude: tuple[str, ...] = ()
    #: Those of these patterns that are meant for this folder, and so should match something in it.
    asked: tuple[str, ...] = ()
    follow_links: bool = False
    #: Extensions that the service can read, such as `.pdf`.
    extensions: frozenset[str] = frozenset()
    #: Those of pictures, if pictures are left out.
    pictures: frozenset[str] = frozenset()
    #: Maximum size of a file.
    max_bytes: int
    #: Maximum length of a path, which becomes the source's title.
    max_path_characters: int = sys.maxsize


class FolderPart:
    """Some files and subfolders of a folder, with everything inside them."""

    def __init__(self, paths: Iterable[str]) -> None:
        """`paths` are relative to the root."""
        self.paths = frozenset(map(composed, paths))
        self._above = frozenset(folder for path in self.paths for folder in folders_above(path))

    def leads_to(self, path: str) -> bool:
        """Whether the path belongs to this part, or is a parent folder of a path that does."""
        return path in self._above or path in self.paths or any(each in self.paths for each in folders_above(path))


def folders_above(path: str) -> Iterator[str]:
    """Yield the parent folders of a path, without the root."""
    end = path.rfind("/")
    while end > 0:
        yield path[:end]
        end = path.rfind("/", 0, end)


class _Folder(NamedTuple):
    """A folder that is still to be listed."""

    #: The folder's path relative to the root, with a trailing slash; empty for the root.
    prefix: str
    #: The same path with the links in it resolved.
    place: str
    #: The ignore rules of this folder's parent folders.
    above: IgnoreRules
    #: For each link on the way to this folder, the real paths of the link's own folder and of its target.
    linked: tuple[str, ...] = ()
    #: The device of the folder that this folder is in; None for the first folder.
    device: int | None = None


class Snapshot:
    """One walk over a folder, to be iterated once. Files and folders that are left out are added to `skips`."""

    def __init__(
        self,
        root: Root,
        filters: Filters,
        part: FolderPart | None = None,
        *,
        start: str = "",
        shown: str = "",
        titles: Titles | None = None,
    ) -> None:
        """Walk all of `root`, or only a part of it, or only the folder `start` in it, which ends in a slash.

        Titles begin with `shown`, which stands for the folder where the walk begins. Walks that share `titles` give
        each file a title of its own.
        """
        self.skips: list[Skip] = []
        #: Whether every folder could be listed, and every file's metadata read.
        self.is_complete = True
        #: The links that are followed, and where they lead to, also those that lead nowhere yet.
        self.links: dict[str, str] = {}
        #: The folders where another disk begins, with a trailing slash, and its device.
        self.mounts: dict[str, int] = {}
        self.root = root
        self._base = f"{str(root.path).rstrip(os.sep)}{os.sep}"
        self.filters = filters
        self._part = part
        self._start, self._shown = start, shown
        self._included = Patterns(spelled(filters.include, root.path)) if filters.include else None
        asked = () if part is not None else filters.asked
        #: The patterns that are meant for this folder, but match nothing in it.
        self.idle = {each: Patterns(spellings(each, root.path)) for each in asked}
        self._titles = titles or Titles()

    def __iter__(self) -> Iterator[Entry]:
        """Yield the files of each folder before those of its subfolders.

        Raises FileRefused if the first folder or its ignore rules can't be read.
        """
        first = self.root.path / self._start
        try:
            rules = first_rules(first, self.filters.exclude)
        except OSError as error:
            raise self._refused(error) from error
        waiting = [_Folder(self._start, self._start, rules)]
        while waiting:
            deeper: list[_Folder] = []
            yield from self._look_into(waiting.pop(), deeper)
            waiting.extend(reversed(deeper))

    def _look_into(self, folder: _Folder, deeper: list[_Folder]) -> Iterator[Entry]:
        """Yield the files of one folder, and add its subfolders to `deeper`."""
        with ExitStack() as opened:
            listed, rules, device = self._list(folder, opened)
            for found in listed:
                try:
                    entry = self.meet(found, folder._replace(device=device), rules, deeper)
                except UNFORESEEN as error:  # one odd file must not end the walk
                    self._miss(self._title(folder.prefix + found.name), error)
                    continue
                if entry is not None:
                    yield entry

    def meet(
        self, found: "os.DirEntry[str]", folder: _Folder, rules: IgnoreRules, deeper: list[_Folder]
    ) -> Entry | None:
        """Return what was found as an entry; None if it is left out or a folder, which is added to `deeper`."""
        raw, place, linked = folder.prefix + found.name, folder.place + found.name, folder.linked
        if self._part is not None and not self._part.leads_to(composed(raw)):
            return None
        is_folder = found.is_dir(follow_symlinks=False)
        is_linked = is_link(found)
        if self.idle:
            is_met = is_folder or (is_linked and leads_to_folder(Path(self._base + raw)))
            self.idle = {each: its for each, its in self.idle.items() if its.find(raw, is_folder=is_met) is None}
        if is_linked:
            here, target = resolved(self._base + folder.prefix), resolved(self._base + raw)
            linked, is_folder = (*folder.linked, here, target), leads_to_folder(Path(target))
        reason = reason_by_name(found.name, self._base + raw, rules, is_folder=is_folder)
        if reason is None and not is_folder and self._included is not None and not self._included.covers(raw):
            reason = "not included"
        if reason is None and is_linked:
            reason, place = self._follow(raw, linked[-1], linked[:-1])
            self.links |= {raw: place} if place else {}
        if reason is not None:
            self._skip(raw, reason, is_folder=is_folder)
        elif is_folder:
            deeper.append(_Folder(f"{raw}/", f"{place}/", rules, linked, folder.device))
        else:
            return self.take(found, raw, place, is_linked=is_linked)
        return None

    def _miss(self, title: str, error: Exception) -> None:
        """Report what could not be read. It may be a file that was moved: an incomplete walk removes no source."""
        self.is_complete = False
        self.skips.append(Skip.unreadable(title, error))

    def _list(self, folder: _Folder, opened: ExitStack) -> tuple[list["os.DirEntry[str]"], IgnoreRules, int | None]:
        """Return the folder's entries, sorted by name, its ignore rules and its device.

        The entries are valid while the folder is open.

        If the folder can't be read, set `is_complete` to False. Raises FileRefused if it is the first one.
        """
        try:
            here = opened.enter_context(self.root.enter(folder.place, LIST))
            listed = sorted(here.list(), key=attrgetter("name"))
            has_rules = any(entry.name in IGNORE_FILES for entry in listed)
            path = Path(self._base + folder.prefix)
            rules = folder.above.inside(path, here.read_rules) if has_rules else folder.above
            device = here.device
        except OSError as error:
            if folder.prefix == self._start:
                raise self._refused(error) from error
            self._miss(self._title(folder.prefix.rstrip("/")) + "/", error)
            return [], folder.above, folder.device
        if device is not None and folder.device not in (None, device):
            self.mounts[composed(folder.prefix)] = device
        return listed, rules, device

    def _refused(self, error: OSError) -> FileRefused:
        folder = self.root.path / self._start
        return FileRefused(f"{folder} can't be read: {error.strerror}.", code="svc_file_unreadable")

    def _follow(self, raw: str, target: str, around: tuple[str, ...]) -> tuple[str | None, str]:
        """Return why a link is not followed, or None and the place that it leads to.

        Links are followed only below the root, and never in a cycle. `around` are the real paths of the folders
        and link targets on the way to the link.
        """
        if not self.filters.follow_links:
            return "link", ""
        place = self.root.find(raw)
        if place is None:
            return "link out of the folder", ""
        if any(f"{folder}{os.sep}".startswith(f"{target.rstrip(os.sep)}{os.sep}") for folder in around):
            return "link in a circle", ""
        try:
            return None if Path(target).exists() else "link leads nowhere", place
        except OSError:  # access to the target is denied; this is reported when the file is read
            return None, place

    def take(self, found: "os.DirEntry[str]", raw: str, place: str, *, is_linked: bool) -> Entry | None:
        """Return the file as an entry; None if its metadata excludes it."""
        shown = self._shown + raw.removeprefix(self._start)
        try:
            facts = self.root.stat(place) if is_linked else found.stat(follow_symlinks=False)
            if not facts.st_ino:  # a list of Windows lacks inodes and the newest times
                facts = self.root.stat(place)
        except FileNotFoundError:
            return None  # deleted since the folder was listed
        except OSError as error:
            self._miss(self._title(raw), error)
            return None
        path = composed(shown)
        reason = reason_by_facts(path, facts, self.filters.max_bytes, self.filters.max_path_characters)
        if reason == "empty" and not is_empty(self.root, place):
            reason = None
        if reason is None and has_twins(shown) and self._titles.name(shown) != path:
            reason = SPELLED_TWICE
        if reason is None:
            return Entry(path, raw, Fingerprint.of(facts), place)
        self._skip(raw, reason)
        return None

    def _skip(self, raw: str, reason: str, *, is_folder: bool = False) -> None:
        self.skips.append(Skip(self._title(raw) + ("/" if is_folder else ""), reason))

    def _title(self, raw: str) -> str:
        return self._titles.name(self._shown + raw.removeprefix(self._start))


def first_rules(root: Path, exclude: Sequence[str]) -> IgnoreRules:
    """Return the ignore rules that `root` inherits, and the patterns of `exclude`."""
    rules = rules_above(root)
    return rules.under(root, Patterns(spelled(exclude, root)), "exclude") if exclude else rules


def spelled(patterns: Iterable[str], folder: Path) -> Iterator[str]:
    """Yield the patterns in all their spellings."""
    for each in patterns:
        yield from spellings(each, folder)


def why_nothing(folder: Path, skips: Iterable[Skip]) -> str:
    """Return why nothing in a folder is sent: the rule that leaves it out, or the reasons of what is skipped."""
    rule = inherit(folder)[1]
    if rule is not None:
        return f"nothing in it is sent, because `{rule[1].text}` in {rule[0]} leaves it out"
    reasons = Counter(skip.reason for skip in skips)
    named = ", ".join(f"{count} \N{MULTIPLICATION SIGN} {reason}" for reason, count in reasons.most_common())
    return f"nothing in it is sent ({named})" if named else "there is nothing in it"


@dataclass(frozen=True, slots=True)
class IgnoreExplanation:
    """Whether and why a sync leaves out a path, judged by its name and ignore rules."""

    path: str
    is_ignored: bool
    #: `dotfile`, `link`, `ignored`, or what is wrong with the name.
    reason: str | None = None
    #: The path that decided: the given path, or a parent folder that is left out.
    at: str | None = None
    #: Where the pattern comes from: the path of an ignore file, or `exclude` for the setting of that name.
    origin: str | None = None
    #: The pattern that decided, if any; it may be an exception (`!`).
    pattern: str | None = None


def explain_all(root: Path, paths: Sequence[str], exclude: Sequence[str] = ()) -> list[IgnoreExplanation]:
    """Explain whether a sync of `root` leaves each path out. Raises UsageError if a path is outside the root."""
    base = Path(os.path.normpath(root.absolute()))
    opened, first = Root(base), first_rules(base, exclude)

    @cache
    def rules_in(folder: Path) -> IgnoreRules:
        """Return the rules inside a folder. Large ignore files are parsed once for all paths."""
        return (first if folder == base else rules_in(folder.parent)).at(opened, str(folder.relative_to(base)))

    return [_explain(base, path, rules_in) for path in paths]


def _explain(base: Path, path: str, rules_in: Callable[[Path], IgnoreRules]) -> IgnoreExplanation:
    full = Path(os.path.normpath(Path(path).absolute()))
    if base not in full.parents:
        raise UsageError(f"{path} is not inside {base}.", hint="name the folder that is synced with --root.")
    folder, found = base, IgnoreExplanation(path, is_ignored=False)
    for name in full.relative_to(base).parts:
        rules, here = rules_in(folder), folder / name
        is_folder = here != full or here.is_dir() or path.endswith("/")
        at = here.relative_to(base).as_posix() + ("/" if is_folder else "")
        reason = reason_by_name(name, str(here), rules, is_folder=is_folder)
        rule = None if reason == "dotfile" else rules.find(str(here), is_folder=is_folder)
        origin, pattern = (rule[0], rule[1].text) if rule else (None, None)
        if reason is not None:
            return IgnoreExplanation(path, is_ignored=True, reason=reason, at=at, origin=origin, pattern=pattern)
        if here.is_symlink():
            return IgnoreExplanation(path, is_ignored=True, reason="link", at=at)
        found = IgnoreExplanation(path, is_ignored=False, at=at, origin=origin, pattern=pattern)
        folder = here
    return found
