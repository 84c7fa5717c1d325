"""Expands the user's paths to the files to upload.

A file that the user named is always sent. In a folder, hidden entries, ignored entries, links, and types that the
service can't read are skipped and reported. A file's title is the same from wherever it is named: see `title_of`.
"""

import os
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from svc_cli.errors import NOTHING, FileRefused, PathMissing, UsageError
from svc_cli.given_files import absolute, title_of
from svc_cli.transfer.contents import STDIN
from svc_cli.transfer.globs import Glob
from svc_cli.transfer.rooted_files import LIST, Root, find_way_out, is_link, refuse_way_out
from svc_cli.transfer.skips import (
    PLACEHOLDER,
    POINTER_BYTES,
    SPELLED_TWICE,
    Skip,
    Titles,
    composed,
    holds_pointer,
    leads_to_folder,
    reason_by_type,
)
from svc_cli.transfer.snapshots import Filters, Snapshot, why_nothing

#: If the user names more paths than this, their folders are not kept open, because a process may open few files.
MOST_KEPT = 32


class GivenPath(NamedTuple):
    """A path that the user named, or one that matches the user's pattern."""

    path: Path
    #: The folder with which the pattern begins, and the place in it that matches.
    root: Root | None = None
    place: str = ""


@dataclass(frozen=True, slots=True)
class SelectedFile:
    """A file to upload."""

    #: The path to open. With a root, it is a place in that folder; without one, `-` is standard input.
    path: Path
    title: str
    #: Whether the user named the file; otherwise the file was found in a folder.
    is_named: bool
    root: Root | None = None

    @property
    def is_stdin(self) -> bool:
        return self.root is None and str(self.path) == STDIN

    @property
    def full(self) -> str:
        """Return the absolute path, in which only a link at its end is not resolved."""
        if self.root is not None:
            return str(self.root.real / self.path)
        return str(Path(os.path.realpath(self.path.parent), self.path.name))


@dataclass(slots=True)
class Selection:
    """The files found under the given paths."""

    filters: Filters
    #: Whether folders are kept open.
    keeps_open: bool = True
    files: list[SelectedFile] = field(default_factory=list)
    skips: list[Skip] = field(default_factory=list)
    _titles: Titles = field(default_factory=Titles)

    def add(self, given: GivenPath) -> None:
        """Add a path that the user named, or that matches a pattern. Raises PathMissing for a broken link."""
        path, root, place = given
        if root is None and str(path) == STDIN:
            self.files.append(SelectedFile(path, STDIN, is_named=True))
        elif root is not None and is_link(path):
            self.skips.append(Skip(self._titles.name(str(path)) + "/" * leads_to_folder(path), "link"))
        elif path.is_dir():
            self._walk(path, root, place)
        elif not path.exists():
            raise PathMissing(f"{path}: the link leads nowhere.", details={"path": str(path)})
        elif (name := self._titles.name(title := title_of(path, place))) == composed(title):
            self.files.append(SelectedFile(Path(place) if root else path, name, is_named=True, root=root))
        else:
            self.skips.append(Skip(name, SPELLED_TWICE, "svc_title_conflict"))

    def add_all(self, path: str, found: Iterable[GivenPath]) -> None:
        """Add what is found under a path or pattern that the user named. It is a failure if nothing of it is sent."""
        files, skips = len(self.files), len(self.skips)
        for each in found:
            self.add(each)
        left_out = self.skips[skips:]
        if len(self.files) == files and not any(skip.error_code for skip in left_out):
            shown = str(Path(path)) + "/" * Path(path).is_dir()
            self.skips.append(Skip(self._titles.name(shown), why_nothing(absolute(Path(path)), left_out), NOTHING))

    def drop_doubles(self) -> None:
        """Keep each file once, preferably as one that the user named.

        Raises UsageError if two files have one title.
        """
        unique: dict[str, SelectedFile] = {}
        for file in self.files:
            if unique.setdefault(file.full, file) is not file and file.is_named:
                unique[file.full] = replace(file, title=unique[file.full].title)
        titled: dict[str, str] = {}
        for full, file in unique.items():
            if (other := titled.setdefault(file.title, full)) != full:
                raise UsageError(
                    f"{other} and {full} would get the same title, {file.title!r}; nothing was sent.",
                    hint="name the folder that both are in, or send one of them alone, with --title.",
                    details={"paths": [other, full], "title": file.title},
                )
        self.files = list(unique.values())
        self.skips = [skip for skip in dict.fromkeys(self.skips) if skip.path not in titled]

    def _walk(self, folder: Path, root: Root | None, place: str) -> None:
        """Add the files below a folder that the user named, or that is at `place` in `root`."""
        start = f"{place}/" if place else ""
        # The folder's title with a trailing slash; empty for the root of a repository.
        title = title_of(folder, place)
        shown = f"{title}/" if title else ""
        try:
            root = root or Root(folder, is_kept=self.keeps_open)
            refuse_way_out(folder, root.way_out)
            walk = Snapshot(root, self.filters, start=start, shown=shown, titles=self._titles)
            for title, _, facts, inside in walk:
                reason = reason_by_type(title, self.filters.extensions, self.filters.pictures, root, inside)
                if reason is None and facts.size_bytes < POINTER_BYTES and holds_pointer(root, inside):
                    reason = PLACEHOLDER
                if reason is None:
                    self.files.append(SelectedFile(Path(inside), title, is_named=False, root=root))
                else:
                    walk.skips.append(Skip(title, reason))
            self.skips += walk.skips
        except FileRefused as error:
            self.skips.append(Skip(f"{self._titles.name(str(folder))}/", error.message.rstrip("."), error.code))
        except OSError as error:
            self.skips.append(Skip.unreadable(f"{self._titles.name(str(folder))}/", error))


def select(paths: Iterable[str], filters: Filters, title: str | None = None) -> Selection:
    """Return the files that the paths select, in order and without duplicates.

    An empty title is none. Raises PathMissing if a path doesn't exist, and UsageError if `title` doesn't fit the number
    of files.
    """
    found = {path: expand([path]) for path in paths}
    selection = Selection(filters, keeps_open=sum(map(len, found.values())) <= MOST_KEPT)
    for path, given in found.items():
        selection.add_all(path, given)
    selection.drop_doubles()
    if title:
        if len(selection.files) != 1 or selection.skips:
            raise UsageError("--title is for a single file, but several were given.", hint="leave --title out.")
        selection.files = [replace(selection.files[0], title=unicodedata.normalize("NFC", title))]
    elif any(file.is_stdin for file in selection.files):
        raise UsageError("Standard input has no name.", hint="give it one: --title NAME.")
    return selection


def expand(paths: Iterable[str]) -> list[GivenPath]:
    """Expand glob patterns in the paths.

    Raises PathMissing if a path doesn't exist or a pattern matches nothing, and UsageError if a link in a path leads
    out of the link's repository, and FileRefused if the system denies access.
    """
    found: list[GivenPath] = []
    for given in paths:
        try:
            is_there = given == STDIN or os.lstat(given) is not None
        except PermissionError as error:
            raise FileRefused(f"{given}: {error.strerror}.", code="svc_file_unreadable") from error
        except (OSError, ValueError):  # ValueError: a NUL character
            is_there = False
        if is_there:
            refuse_way_out(Path(given), find_way_out(Path(given)))
            found.append(GivenPath(Path(given)))
            continue
        # The shell leaves patterns alone that are quoted.
        matches = sorted(_find(given), key=attrgetter("path")) if set(given) & set("*?[") else []
        if not matches:
            raise PathMissing(f"{given}: there is no such file or folder.", details={"path": given})
        found += matches
    return found


def _find(pattern: str) -> Iterator[GivenPath]:
    """Yield the files and folders that match a path with `*`, `?`, brackets or `**`, as in a shell.

    Only a pattern that begins with a dot finds a name that does. A link that is found is yielded, but never entered.
    """
    parts = pattern.replace(os.sep, "/").split("/")
    number = next(number for number, part in enumerate(parts) if set(part) & set("*?["))
    start, only_folders = Path("".join(f"{part}/" for part in parts[:number])), parts[-1] == ""
    try:
        root = Root(start)
        globs = [None if part == "**" else Glob(part) for part in parts[number:] if part]
    except (OSError, ValueError):
        return  # there is no such folder, or a bracket isn't closed
    refuse_way_out(start, root.way_out)
    # Folders to list, each with the parts of the pattern that can match its entries.
    waiting = [("", _with_next({0}, globs))]
    if number and len(globs) in waiting[0][1]:
        yield GivenPath(start, root)
    while waiting:
        prefix, places = waiting.pop()
        with suppress(OSError), root.enter(prefix, LIST) as folder:
            for entry in folder.list():  # as in a shell, no access is no match
                place, reached = prefix + entry.name, _advance(entry, globs, places)
                is_linked = bool(reached) and is_link(entry)
                is_folder = bool(reached) and not is_linked and entry.is_dir(follow_symlinks=False)
                reached = _with_next(reached, globs) if is_folder else reached
                leads_deeper = is_linked and leads_to_folder(start / place)
                if leads_deeper or (len(globs) in reached and (is_folder or not only_folders)):
                    yield GivenPath(start / place, root, place)
                if is_folder and min(reached) < len(globs):
                    waiting.append((f"{place}/", reached))


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
