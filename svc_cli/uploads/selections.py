"""From paths as the user gave them to the files that go up, each with its title.

A file that is named is always sent. A folder is walked: what starts with a dot, is ignored, is a link, or is of a type
that the service can't read is left out and listed. The title is the path as given, with `/` between its parts.
"""

import glob
import os
import stat
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from svc_cli.errors import PathMissing, UsageError
from svc_cli.uploads.ignores import IgnoreRules, rules_above

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


@dataclass(frozen=True, slots=True)
class Skip:
    """A file or folder that was left out by policy."""

    title: str
    reason: str


@dataclass(slots=True)
class Selection:
    """What was found under the paths that were given."""

    candidates: list[Candidate] = field(default_factory=list)
    skips: list[Skip] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class FolderPolicy:
    """What of a folder's files is worth sending."""

    #: Extensions the service can read, lower case with their dot.
    extensions: frozenset[str]
    #: Larger files are refused by the service.
    max_bytes: int


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
    if given == STDIN or os.path.lexists(given):
        return [Path(given)]
    # Shells expand patterns themselves; a quoted one, or `**` where the shell lacks it, arrives here.
    # Path.glob takes no absolute pattern.
    found = sorted(glob.glob(given, recursive=True)) if glob.has_magic(given) else []  # noqa: PTH207
    if not found:
        raise PathMissing(f"{given}: there is no such file or folder.", details={"path": given})
    return [Path(match) for match in found]


def _add(selection: Selection, path: Path, policy: FolderPolicy) -> None:
    if str(path) == STDIN:
        selection.candidates.append(Candidate(path, STDIN, is_named=True))
    elif path.is_dir():
        _walk(selection, path, rules_above(path.absolute()), policy)
    elif path.exists():
        selection.candidates.append(Candidate(path, title_of(path), is_named=True))
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
        is_folder = entry.is_dir(follow_symlinks=False)
        reason = _reason_to_skip(entry, path, rules, policy)
        if reason:
            selection.skips.append(Skip(title_of(path) + ("/" if is_folder else ""), reason))
        elif is_folder:
            levels.append(_look_into(selection, path, rules))
        else:
            selection.candidates.append(Candidate(path, title_of(path), is_named=False))


def _look_into(
    selection: Selection, folder: Path, above: IgnoreRules
) -> Iterator[tuple["os.DirEntry[str]", IgnoreRules]]:
    """The entries of one folder by name, with the rules that hold in it."""
    # Rules are matched on absolute paths: `docs`, `./docs` and `.` are one folder.
    rules = above.inside(folder.absolute())
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        selection.skips.append(Skip(f"{title_of(folder)}/", f"can't be read: {error.strerror}"))
        return
    yield from ((entry, rules) for entry in entries)


def _reason_to_skip(entry: "os.DirEntry[str]", path: Path, rules: IgnoreRules, policy: FolderPolicy) -> str | None:
    if entry.name.startswith("."):
        return "dotfile"
    if entry.is_symlink():
        return "link"
    is_folder = entry.is_dir(follow_symlinks=False)
    if rules.ignores(str(path.absolute()), is_folder=is_folder):
        return "ignored"
    if is_folder:
        return None
    return _reason_to_skip_file(entry, path, policy)


def _reason_to_skip_file(entry: "os.DirEntry[str]", path: Path, policy: FolderPolicy) -> str | None:
    try:
        facts = entry.stat(follow_symlinks=False)
    except OSError as error:  # gone since the folder was listed, or its path is too long
        return f"can't be read: {error.strerror}"
    if not stat.S_ISREG(facts.st_mode):
        return "not a regular file"
    if facts.st_size == 0:
        return "empty"
    if facts.st_size > policy.max_bytes:
        return "too large"
    if not is_utf8(entry.name):
        return "name is not UTF-8"
    return None if can_extract(path, policy.extensions) else "type can't be read"


def can_extract(path: Path, extensions: frozenset[str]) -> bool:
    """Whether the service reads files of this name, or, where the name says nothing, whether the file is text."""
    if path.suffix.lower() in extensions:
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
