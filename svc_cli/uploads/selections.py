"""Expands the user's paths to the files to upload.

A file that the user named is always sent. In a folder, hidden entries, ignored entries, links, and types that the
service can't read are skipped and reported. A file's title is its path as given.
"""

import os
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from svc_cli.errors import FileRefused, PathMissing, UsageError
from svc_cli.uploads.contents import STDIN
from svc_cli.uploads.globs import Glob
from svc_cli.uploads.ignores import IgnoreRules, rules_above
from svc_cli.uploads.skips import (
    SPELLED_TWICE,
    UNREADABLE_TYPE,
    Skip,
    Titles,
    can_extract,
    composed,
    leads_to_folder,
    reason_by_facts,
    reason_by_name,
)


class _Level(NamedTuple):
    """A folder that is being walked."""

    #: The folder as the user gave it, with a trailing slash; empty for the current folder.
    prefix: str
    #: The folder's absolute path, with a trailing slash.
    absolute: str
    #: The ignore rules that apply to the folder's entries.
    rules: IgnoreRules
    #: The entries that are still to be visited.
    entries: "Iterator[os.DirEntry[str]]"


@dataclass(frozen=True, slots=True)
class SelectedFile:
    """A file to upload."""

    #: The path to open; `-` is standard input.
    path: Path
    title: str
    #: Whether the user named the file; otherwise the file was found in a folder.
    is_named: bool


@dataclass(frozen=True, slots=True)
class FolderPolicy:
    """The rules that decide which files of a folder are sent."""

    #: Extensions that the service can read, such as `.pdf`.
    extensions: frozenset[str]
    #: Maximum size of a file.
    max_bytes: int
    #: Maximum length of a path, which becomes the file's title.
    max_path_characters: int = sys.maxsize


@dataclass(slots=True)
class Selection:
    """The files found under the given paths."""

    policy: FolderPolicy
    files: list[SelectedFile] = field(default_factory=list)
    skips: list[Skip] = field(default_factory=list)
    _titles: Titles = field(default_factory=Titles)

    def add(self, path: Path) -> None:
        """Add a path that the user named. Raises PathMissing for a broken link."""
        if str(path) == STDIN:
            self.files.append(SelectedFile(path, STDIN, is_named=True))
        elif path.is_dir():
            self._walk(path)
        elif not path.exists():
            raise PathMissing(f"{path}: the link leads nowhere.", details={"path": str(path)})
        elif (name := self._titles.name(str(path))) == composed(str(path)):
            self.files.append(SelectedFile(path, name, is_named=True))
        else:
            self.skips.append(Skip(name, SPELLED_TWICE, "svc_title_conflict"))

    def drop_doubles(self) -> None:
        """Keep one file per title, preferably one that the user named."""
        unique: dict[str, SelectedFile] = {}
        for file in self.files:
            if file.is_named or file.title not in unique:
                unique[file.title] = file
        self.files = list(unique.values())
        self.skips = [skip for skip in dict.fromkeys(self.skips) if skip.path not in unique]

    def _walk(self, root: Path) -> None:
        """Add the files below a folder. Not recursive, because a tree may be deeper than Python's stack."""
        levels = [self._list(root, rules_above(root.absolute()))]
        while levels:
            folder = levels[-1]
            entry = next(folder.entries, None)
            if entry is None:
                levels.pop()
                continue
            path = folder.prefix + entry.name
            is_link = entry.is_symlink()
            is_folder = leads_to_folder(Path(path)) if is_link else entry.is_dir(follow_symlinks=False)
            reason = reason_by_name(entry.name, folder.absolute + entry.name, folder.rules, is_folder=is_folder)
            reason = "link" if reason is None and is_link else reason
            if reason:
                self.skips.append(Skip(self._titles.name(path) + ("/" if is_folder else ""), reason))
            elif is_folder:
                levels.append(self._list(Path(path), folder.rules))
            else:
                self._take(entry, path)

    def _list(self, folder: Path, above: IgnoreRules) -> _Level:
        # Ignore rules are matched against absolute paths, since `docs`, `./docs` and `.` may mean the same folder.
        absolute = folder.absolute()
        entries: list[os.DirEntry[str]] = []
        try:
            with os.scandir(folder) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError as error:
            self.skips.append(Skip.unreadable(f"{self._titles.name(str(folder))}/", error))
        prefix, absolute_prefix = (str(each / "_")[:-1] for each in (folder, absolute))
        return _Level(prefix, absolute_prefix, above.inside(absolute), iter(entries))

    def _take(self, entry: "os.DirEntry[str]", path: str) -> None:
        """Add a file found in a folder, or record why it is skipped."""
        policy, name, title = self.policy, self._titles.name(path), composed(path)
        try:
            facts = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return  # deleted since the folder was listed
        except OSError as error:
            self.skips.append(Skip.unreadable(name, error))
            return
        reason = reason_by_facts(title, facts, policy.max_bytes, policy.max_path_characters)
        if reason is None and name != title:
            reason = SPELLED_TWICE
        file = Path(path)
        if reason is None and not can_extract(file, policy.extensions):
            reason = UNREADABLE_TYPE
        if reason is None:
            self.files.append(SelectedFile(file, title, is_named=False))
        else:
            self.skips.append(Skip(name, reason))


def select(paths: Iterable[str], policy: FolderPolicy, title: str | None = None) -> Selection:
    """Return the files that the paths select, in order and without duplicates.

    Raises PathMissing if a path doesn't exist, and UsageError if `title` doesn't fit the number of files.
    """
    selection = Selection(policy)
    for path in expand(paths):
        selection.add(path)
    selection.drop_doubles()
    if title is not None:
        if len(selection.files) != 1 or selection.skips:
            raise UsageError("--title is for a single file, but several were given.", hint="leave --title out.")
        (only,) = selection.files
        selection.files = [SelectedFile(only.path, unicodedata.normalize("NFC", title), only.is_named)]
    elif any(str(file.path) == STDIN for file in selection.files):
        raise UsageError("Standard input has no name.", hint="give it one: --title NAME.")
    return selection


def expand(paths: Iterable[str]) -> list[Path]:
    """Expand glob patterns in the paths. Raises PathMissing if a path doesn't exist or a pattern matches nothing."""
    found: list[Path] = []
    for given in paths:
        if given == STDIN or _exists(given):
            found.append(Path(given))
            continue
        # The shell leaves patterns alone that are quoted.
        matches = sorted(_find(given)) if set(given) & set("*?[") else []
        if not matches:
            raise PathMissing(f"{given}: there is no such file or folder.", details={"path": given})
        found += map(Path, matches)
    return found


def _exists(given: str) -> bool:
    """Whether the path exists. Raises FileRefused if the system denies access."""
    try:
        os.lstat(given)
    except PermissionError as error:
        raise FileRefused(f"{given}: {error.strerror}.", code="svc_file_unreadable") from error
    except (OSError, ValueError):  # ValueError: a NUL character
        return False
    return True


def _find(pattern: str) -> Iterator[str]:
    """Yield the files and folders that match a path with `*`, `?`, brackets or `**`, as in a shell.

    Only a pattern that begins with a dot finds a name that does. `**` follows no links, so folders are listed once.
    """
    parts = pattern.replace(os.sep, "/").split("/")
    number = next(number for number, part in enumerate(parts) if set(part) & set("*?["))
    start, only_folders = "".join(f"{part}/" for part in parts[:number]), parts[-1] == ""
    try:
        globs = [None if part == "**" else Glob(part) for part in parts[number:] if part]
    except ValueError:
        return  # a bracket isn't closed, so nothing matches
    # Folders to list, each with the parts of the pattern that can match its entries.
    waiting = [(start, _with_next({0}, globs))]
    if start and len(globs) in waiting[0][1] and leads_to_folder(Path(start)):
        yield start
    while waiting:
        folder, places = waiting.pop()
        with suppress(OSError), os.scandir(folder or ".") as entries:  # as in a shell, no access is no match
            for entry in entries:
                path, reached = folder + entry.name, _advance(entry, globs, places)
                is_folder = bool(reached) and leads_to_folder(Path(path))
                reached = _with_next(reached, globs) if is_folder else reached
                if len(globs) in reached and (is_folder or not only_folders):
                    yield path
                if is_folder and min(reached) < len(globs):
                    waiting.append((f"{path}/", reached))


def _advance(entry: "os.DirEntry[str]", globs: Sequence[Glob | None], places: set[int]) -> set[int]:
    """Return the parts of the pattern that can follow once the entry has matched a part at one of `places`."""
    reached = set[int]()
    for place in places - {len(globs)}:
        glob = globs[place]
        if entry.name.startswith(".") and (glob is None or not glob.head.startswith(".")):
            continue
        if glob is None and entry.is_dir(follow_symlinks=False):
            reached.add(place)
        elif glob.match(entry.name) if glob else place + 1 == len(globs):
            reached.add(place + 1)
    return reached


def _with_next(places: set[int], globs: Sequence[Glob | None]) -> set[int]:
    """Add the parts of the pattern behind each `**`, which may match no folder at all."""
    for place, glob in enumerate(globs):
        if place in places and glob is None:
            places = {*places, place + 1}
    return places
