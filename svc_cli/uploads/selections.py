"""From paths as the user gave them to the files that go up, each with its title.

A file that is named is always sent. A folder is walked: what starts with a dot, is ignored, is a link, or is of a type
that the service can't read is left out and listed. The title is the path as given, with `/` between its parts.
"""

import glob
import os
import stat
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import NamedTuple

from svc_cli.errors import FileRefused, PathMissing, UsageError
from svc_cli.uploads.ignores import IgnoreRules, rules_above
from svc_cli.uploads.skips import SPELLED_TWICE, UNREADABLE_TYPE
from svc_daemon.wire.file_names import find_flaw, find_odd_character

STDIN = "-"
#: Enough of a file to see that it is not text.
SNIFF_BYTES = 8192


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file that was chosen."""

    #: As it is opened; `-` is standard input.
    path: Path
    title: str
    #: Named by the user, not found in a folder.
    is_named: bool

    @property
    def is_stdin(self) -> bool:
        return str(self.path) == STDIN


class Skip(NamedTuple):
    """A file or folder that is left out; a folder's path ends in `/`."""

    path: str
    reason: str
    #: Where no policy says so: it has failed.
    error_code: str | None = None


@dataclass(slots=True)
class Selection:
    """What was found under the paths that were given."""

    candidates: list[Candidate] = field(default_factory=list)
    skips: list[Skip] = field(default_factory=list)
    #: The first path of each title that can be spelled in several ways.
    spellings: dict[str, Path] = field(default_factory=dict)

    def name(self, path: Path) -> str:
        """The title of a path; where another path has it, this one's own spelling, as code points."""
        title = title_of(path)
        if title.isascii() or self.spellings.setdefault(title, path) == path:
            return title
        return spelled_out(path.as_posix())


@dataclass(frozen=True, slots=True)
class FolderPolicy:
    """What of a folder's files is worth sending."""

    #: Extensions the service can read, lower case with their dot.
    extensions: frozenset[str]
    #: Larger files are refused by the service.
    max_bytes: int
    #: Longer paths can't be titles.
    max_path_characters: int = sys.maxsize


def select(paths: Iterable[str], policy: FolderPolicy, title: str | None = None) -> Selection:
    """Files behind the paths, in order, each once.

    Raises PathMissing for a path or pattern that leads nowhere, and UsageError when `title` would go to several files
    or standard input has none.
    """
    selection = Selection()
    for found in expand(paths):
        _add(selection, found, policy)
    _deduplicate(selection)
    return _with_title(selection, title)


def title_of(path: PurePath) -> str:
    """A path as a title: `/`-separated and composed, so that two systems spell the same name the same way."""
    return unicodedata.normalize("NFC", path.as_posix())


def expand(paths: Iterable[str]) -> list[Path]:
    """The paths with their patterns resolved. Raises PathMissing for what leads nowhere."""
    return [found for path in paths for found in _expand(path)]


def _expand(given: str) -> list[Path]:
    if given == STDIN or _is_there(given):
        return [Path(given)]
    # Shells expand patterns themselves; a quoted one, or `**` where the shell lacks it, arrives here.
    # Path.glob takes no absolute pattern.
    found = sorted(glob.glob(given, recursive=True)) if glob.has_magic(given) else []  # noqa: PTH207
    if not found:
        raise PathMissing(f"{given}: there is no such file or folder.", details={"path": given})
    return [Path(match) for match in found]


def _is_there(given: str) -> bool:
    """Whether the path leads to anything. Raises FileRefused where nobody may look."""
    try:
        os.lstat(given)
    except PermissionError as error:
        raise FileRefused(f"{given}: {error.strerror}.", code="svc_file_unreadable") from error
    except (OSError, ValueError):  # ValueError: a NUL, which no path holds
        return False
    return True


def _add(selection: Selection, path: Path, policy: FolderPolicy) -> None:
    if str(path) == STDIN:
        selection.candidates.append(Candidate(path, STDIN, is_named=True))
    elif path.is_dir():
        _walk(selection, path, rules_above(path.absolute()), policy)
    elif path.exists():
        if (name := selection.name(path)) == title_of(path):
            selection.candidates.append(Candidate(path, name, is_named=True))
        else:
            selection.skips.append(Skip(name, SPELLED_TWICE, "svc_title_conflict"))
    else:
        raise PathMissing(f"{path}: the link leads nowhere.", details={"path": str(path)})


def _walk(selection: Selection, folder: Path, above: IgnoreRules, policy: FolderPolicy) -> None:
    """Everything below a folder, in order; with a stack of its own, since a tree may be deeper than Python's."""
    levels = [_look_into(selection, folder, above)]
    while levels:
        entry, rules = next(levels[-1], (None, above))
        if entry is None:
            levels.pop()
            continue
        path = Path(entry.path)
        is_link = entry.is_symlink()
        is_folder = leads_to_folder(path) if is_link else entry.is_dir(follow_symlinks=False)
        reason = reason_by_name(entry.name, str(path.absolute()), rules, is_folder=is_folder)
        reason = "link" if reason is None and is_link else reason
        if reason:
            selection.skips.append(Skip(selection.name(path) + ("/" if is_folder else ""), reason))
        elif is_folder:
            levels.append(_look_into(selection, path, rules))
        else:
            _take(selection, entry, policy)


def leads_to_folder(link: Path) -> bool:
    """Whether a link leads to a folder, as far as anybody may look."""
    try:
        return link.is_dir()
    except OSError:
        return False


def _look_into(
    selection: Selection, folder: Path, above: IgnoreRules
) -> Iterator[tuple["os.DirEntry[str]", IgnoreRules]]:
    """The entries of one folder by name, with the rules that hold in it."""
    # Rules are matched on absolute paths: `docs`, `./docs` and `.` are one folder.
    rules = above.inside(folder.absolute())
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError as error:
        selection.skips.append(unreadable(f"{selection.name(folder)}/", error))
        return
    yield from ((entry, rules) for entry in entries)


def _take(selection: Selection, entry: "os.DirEntry[str]", policy: FolderPolicy) -> None:
    """A file of a folder, unless its state says otherwise."""
    path = Path(entry.path)
    name, title = selection.name(path), title_of(path)
    try:
        facts = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return  # gone since the folder was listed
    except OSError as error:
        selection.skips.append(unreadable(name, error))
        return
    reason = reason_by_facts(title, facts, policy.max_bytes, policy.max_path_characters)
    if reason is None and name != title:
        reason = SPELLED_TWICE
    if reason is None and not can_extract(path, policy.extensions):
        reason = UNREADABLE_TYPE
    if reason is None:
        selection.candidates.append(Candidate(path, title, is_named=False))
    else:
        selection.skips.append(Skip(name, reason))


def reason_by_name(name: str, path: str, rules: IgnoreRules, *, is_folder: bool) -> str | None:
    """Why what has this name, and this absolute path, is left out of its folder."""
    if name.startswith("."):
        return "dotfile"
    if rules.layers and rules.ignores(path, is_folder=is_folder):
        return "ignored"
    flaw = find_odd_character(name) if is_folder else find_flaw(name)
    return None if flaw is None else flaw.value


def reason_by_facts(title: str, facts: os.stat_result, max_bytes: int, max_path_characters: int) -> str | None:
    """Why a file with this title is left out, as the system describes it."""
    if not stat.S_ISREG(facts.st_mode):
        return "not a regular file"
    if facts.st_size == 0:
        return "empty"
    if facts.st_size > max_bytes:
        return "too large"
    return "path is too long" if len(title) > max_path_characters else None


def unreadable(path: str, error: OSError) -> Skip:
    """What the system does not let be read; what is gone since the folder around it was listed is no failure."""
    is_gone = isinstance(error, FileNotFoundError)
    return Skip(path, f"can't be read: {error.strerror}", None if is_gone else "svc_file_unreadable")


def spelled_out(path: str) -> str:
    """A path with its code points visible: two spellings of one name look the same."""
    return path.encode("ascii", "backslashreplace").decode()


def can_extract(path: Path, extensions: frozenset[str]) -> bool:
    """Whether the service reads files of this name, or, where the name says nothing, whether the file is text."""
    if not {path.suffix.lower(), "".join(path.suffixes[-2:]).lower()}.isdisjoint(extensions):
        return True
    try:
        with path.open("rb") as file:
            start = file.read(SNIFF_BYTES)
    except OSError:
        return True  # reading it later will say why it can't be read
    return is_text(start)


def is_text(start: bytes) -> bool:
    """Whether the first bytes of a file are UTF-8 text; a character cut at the end counts as text."""
    if b"\0" in start:
        return False
    try:
        start.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start >= len(start) - 3 and len(start) == SNIFF_BYTES
    return True


def is_utf8(name: str) -> bool:
    """Whether a name can be sent at all; other bytes arrive from the system as lone surrogates."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _deduplicate(selection: Selection) -> None:
    unique: dict[str, Candidate] = {}
    for candidate in selection.candidates:
        earlier = unique.get(candidate.title)
        if earlier is None or candidate.is_named:
            unique[candidate.title] = candidate
    selection.candidates = list(unique.values())
    selection.skips = [skip for skip in dict.fromkeys(selection.skips) if skip.path not in unique]


def _with_title(selection: Selection, title: str | None) -> Selection:
    candidates = selection.candidates
    if title is not None:
        if len(candidates) + len(selection.skips) != 1 or not candidates:
            raise UsageError("--title names one file, but several were given.", hint="leave --title out.")
        only = candidates[0]
        selection.candidates = [Candidate(only.path, unicodedata.normalize("NFC", title), only.is_named)]
    elif any(candidate.is_stdin for candidate in candidates):
        raise UsageError("Standard input has no name.", hint="give it one: --title NAME.")
    return selection
