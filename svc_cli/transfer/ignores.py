"""Decides which files of a folder are left out, by which rule, and what title each file gets.

Git's rules apply: files in an ignored folder are left out, because the folder is not entered.
"""

import os
import re
import stat
import unicodedata
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import NamedTuple, Self

from svc_cli.errors import FileRefused
from svc_cli.transfer.contents import opened
from svc_cli.transfer.globs import Glob
from svc_cli.transfer.rooted_files import Root, find_repository
from svc_daemon.wire import JsonMapping
from svc_daemon.wire.names import NameFlaw, find_flaw, find_odd_character

#: Read in this order. The last pattern that matches decides, so `.svcignore` takes precedence.
IGNORE_FILES = (".gitignore", ".svcignore")
#: How many folders a set of patterns remembers its verdicts for.
KNOWN_FOLDERS = 10_000


class Pattern(NamedTuple):
    """One line of an ignore file."""

    text: str
    glob: Glob
    #: Whether the line begins with `!`, so that the pattern is an exception.
    keeps: bool
    #: Whether the pattern ends in `/`, and so matches folders only.
    only_folders: bool
    #: Whether the pattern is matched against the whole path, and not only the name.
    is_path: bool

    @classmethod
    def parse(cls, line: str) -> Self | None:
        """Parse a line; None for a comment, a blank line, or a pattern that matches nothing."""
        # Ignore trailing spaces, except after a backslash.
        end = len(line.rstrip(" "))
        slashes = end - len(line[:end].rstrip("\\"))
        text = line[: end + slashes % 2]
        if not text or text.startswith("#"):
            return None
        body = text.removeprefix("!")
        only_folders = body.endswith("/")
        body = body.removesuffix("/")
        is_path = "/" in body
        body = body.removeprefix("/")
        if body.startswith("**/") and "/" not in body[3:]:  # `**/name` is `name`, which is matched faster
            is_path, body = False, body[3:]
        try:
            return cls(text, Glob(body), text.startswith("!"), only_folders, is_path) if body else None
        except ValueError:
            return None


class Patterns:
    """The patterns of one ignore file, or of the command line."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.all = tuple(pattern for line in lines if (pattern := Pattern.parse(line)))
        # Most patterns are a name, a path or `*.log`. Tables find the last of them at once; the keys of patterns that
        # match folders only end in `/`.
        self._names, self._paths, self._endings = dict[str, int](), dict[str, int](), dict[str, int]()
        others: list[int] = []
        for number, (_, glob, _, only_folders, is_path) in enumerate(self.all):
            if glob.literal is not None:
                (self._paths if is_path else self._names)[glob.literal + "/" * only_folders] = number
            elif glob.is_one_star and not is_path and not glob.head and glob.tail.rfind(".") == 0:
                self._endings[glob.tail + "/" * only_folders] = number
            else:
                others.append(number)
        self._others = tuple(reversed(others))
        #: For each folder, the number of the last pattern that matches it or one of its parents.
        self._above: dict[str, int] = {}

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the text of an ignore file."""
        return cls(line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n"))

    def find(self, path: str, *, is_folder: bool) -> Pattern | None:
        """Return the last pattern that matches this `/`-separated path, or None."""
        number = self._find(path, is_folder=is_folder)
        return self.all[number] if number >= 0 else None

    def covers(self, path: str) -> bool:
        """Whether a pattern matches the file or one of its parent folders, and the last such pattern has no `!`."""
        if len(self._above) > KNOWN_FOLDERS:
            self._above.clear()
        folder = path.rpartition("/")[0]
        unknown: list[str] = []
        while folder and folder not in self._above:
            unknown.append(folder)
            folder = folder.rpartition("/")[0]
        number = self._above.get(folder, -1)
        for folder in reversed(unknown):
            number = self._above[folder] = max(number, self._find(folder, is_folder=True))
        number = max(number, self._find(path, is_folder=False))
        return number >= 0 and not self.all[number].keeps

    def _find(self, path: str, *, is_folder: bool) -> int:
        """Return the number of the last pattern that matches the path, or -1."""
        name = path.rpartition("/")[2]
        ending = name[name.rfind(".") :] if "." in name else ""
        get_name, get_path, get_ending = self._names.get, self._paths.get, self._endings.get
        last = max(get_name(name, -1), get_path(path, -1), get_ending(ending, -1))
        if is_folder:
            last = max(last, get_name(f"{name}/", -1), get_path(f"{path}/", -1), get_ending(f"{ending}/", -1))
        for number in self._others:
            if number < last:
                break
            _, glob, _, only_folders, is_path = self.all[number]
            if (is_folder or not only_folders) and glob.match(path if is_path else name):
                return number
        return last


class Layer(NamedTuple):
    """The rules of one ignore file, or of the command line."""

    #: Length of the absolute path of the folder with the rules. This prefix is cut off before a path is matched.
    behind: int
    patterns: Patterns
    #: The path of the ignore file, or `exclude`.
    origin: str
    #: What comes before the rest of the path, if the folder with the rules is not in the path.
    before: str = ""


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The ignore rules that apply inside a folder: those of its parent folders, then its own."""

    layers: tuple[Layer, ...] = ()

    def inside(self, folder: Path, read: Callable[[str], bytes]) -> "IgnoreRules":
        """Return these rules plus those of the ignore files in `folder`, an absolute path.

        `read` returns the bytes of a file in the folder; empty if there is none.
        """
        rules = self
        for name in IGNORE_FILES:
            if data := read(name):
                rules = rules.under(folder, Patterns.parse(data.decode("utf-8", errors="replace")), str(folder / name))
        return rules

    def at(self, root: Root, place: str) -> "IgnoreRules":
        """Return these rules plus those of the ignore files at a place in `root`. Raises OSError."""
        with suppress(FileNotFoundError, NotADirectoryError), root.enter(place) as folder:
            return self.inside(root.path / place, folder.read_rules)
        return self

    def under(self, folder: Path, patterns: Patterns, origin: str) -> "IgnoreRules":
        """Return these rules plus `patterns`, which apply inside `folder`."""
        behind = len(str(folder).rstrip(os.sep)) + 1
        return IgnoreRules((*self.layers, Layer(behind, patterns, origin)))

    def ignores(self, path: str, *, is_folder: bool) -> bool:
        """Whether the last rule that matches this absolute path ignores it."""
        found = self.find(path, is_folder=is_folder)
        return found is not None and not found[1].keeps

    def find(self, path: str, *, is_folder: bool) -> tuple[str, Pattern] | None:
        """Return the origin and pattern of the last rule that matches the absolute path, or None."""
        for behind, patterns, origin, before in reversed(self.layers):
            relative = before + path[behind:]
            relative = relative if os.sep == "/" else relative.replace(os.sep, "/")
            if pattern := patterns.find(relative, is_folder=is_folder):
                return origin, pattern
        return None


def rules_above(folder: Path) -> IgnoreRules:
    """Return the rules that `folder` inherits from its parent folders, up to the root of its Git repository.

    If they ignore the folder itself, the result ignores everything inside. If links lead to the folder, the rules
    above its real path apply too, but can't ignore it as a whole. Raises OSError if an ignore file can't be read.
    """
    rules, ignored_by = _inherit(folder)
    if ignored_by is not None:
        return rules.under(folder, Patterns(["*"]), ignored_by)
    real = Path(os.path.realpath(folder))
    if real == folder:
        return rules
    start, inside = len(str(folder).rstrip(os.sep)) + 1, f"{real}{os.sep}"
    moved = (each._replace(behind=start, before=inside[each.behind :]) for each in _inherit(real)[0].layers)
    return IgnoreRules((*rules.layers, *moved))


def _inherit(folder: Path) -> tuple[IgnoreRules, str | None]:
    """Return the rules above a folder, and the origin of the rule that ignores the folder or one of its parents."""
    root, rules = find_repository(folder), IgnoreRules()
    if root is None or root == folder:
        return rules, None
    repository = Root(root)
    for parent in reversed((folder / "_").relative_to(root).parents):
        found = rules.find(str(root / parent), is_folder=True)
        if found is not None and not found[1].keeps:
            return rules, found[0]
        if root / parent != folder:
            rules = rules.at(repository, str(parent))
    return rules, None


UNREADABLE_TYPE = "type can't be read"
SPELLED_TWICE = "another file has the same name in a different Unicode spelling"
#: Bytes to read to decide whether a file is text.
SNIFF_BYTES = 8192

#: Maps each reason, up to a colon in its text, to the `reason_code` in JSON.
CODES = {
    "dotfile": "dotfile",
    "ignored": "ignored",
    "not included": "not_included",
    "link": "link",
    "link out of the folder": "link_outside",
    "link in a circle": "link_loop",
    "link leads nowhere": "link_broken",
    "not a regular file": "not_a_file",
    "empty": "empty",
    "too large": "too_large",
    "path is too long": "path_too_long",
    UNREADABLE_TYPE: "type_unreadable",
    "can't be read": "unreadable",
    NameFlaw.NO_NAME: "name_invalid",
    NameFlaw.NOT_UTF8: "name_not_utf8",
    NameFlaw.TOO_LONG: "name_too_long",
    NameFlaw.INVISIBLE: "name_invisible",
    SPELLED_TWICE: "name_taken",
    "left out with its folder": "folder_left_out",
}


def readable_extensions(limits: JsonMapping) -> frozenset[str]:
    """Return the extensions that the service can read, such as `.pdf`."""
    return frozenset(f".{each.lower().lstrip('.')}" for form in limits["formats"] for each in form["extensions"])


class Skip(NamedTuple):
    """A file or folder that is left out; a folder's path ends in `/`."""

    path: str
    reason: str
    #: Set if the file counts as failed.
    error_code: str | None = None

    @classmethod
    def unreadable(cls, path: str, error: OSError) -> "Skip":
        """Return the skip for an unreadable path. The file counts as failed, unless it no longer exists."""
        is_gone = isinstance(error, FileNotFoundError)
        return cls(path, f"can't be read: {error.strerror}", None if is_gone else "svc_file_unreadable")


def code_of(reason: str) -> str:
    """Return the `reason_code` of a reason."""
    words = reason.partition(":")[0]
    return CODES.get(words) or re.sub(r"\W+", "_", words).strip("_").lower()


#: Finds a character that Unicode can encode in several ways, such as `K`, which is also the Kelvin sign.
has_twins = re.compile(r"[^\x00-\x7f]|[K;`]").search


class Titles:
    """Assigns titles to paths, so that two Unicode spellings of a name get different titles."""

    def __init__(self) -> None:
        self._first: dict[str, str] = {}

    def name(self, path: str) -> str:
        """Return the title of a path. If another path has the same title, non-ASCII characters are escaped."""
        title = composed(path)
        if not has_twins(title) or self._first.setdefault(title, path) == path:
            return title
        return path.encode("ascii", "backslashreplace").decode()


def composed(path: str) -> str:
    """Convert a path to a title that is the same on all systems: `/`-separated and in Unicode NFC."""
    if path.isascii() and os.sep == "/":
        return path
    return unicodedata.normalize("NFC", path if os.sep == "/" else path.replace(os.sep, "/"))


def is_utf8(name: str) -> bool:
    """Whether a file name is UTF-8."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def reason_by_name(name: str, path: str, rules: IgnoreRules, *, is_folder: bool) -> str | None:
    """Return why a file or folder is left out because of its name or path; None if it is not."""
    if name.startswith("."):
        return "dotfile"
    if rules.layers and rules.ignores(path, is_folder=is_folder):
        return "ignored"
    flaw = find_odd_character(name) if is_folder else find_flaw(name)
    return None if flaw is None else flaw.value


def reason_by_facts(title: str, facts: os.stat_result, max_bytes: int, max_path_characters: int) -> str | None:
    """Return why a file is left out because of its metadata or title; None if it is not."""
    if not stat.S_ISREG(facts.st_mode):
        return "not a regular file"
    if facts.st_size == 0:
        return "empty"
    if facts.st_size > max_bytes:
        return "too large"
    return "path is too long" if len(title) > max_path_characters else None


def leads_to_folder(link: Path) -> bool:
    """Whether a link points to a folder; False if it can't be followed."""
    try:
        return link.is_dir()
    except OSError:
        return False


def can_extract(name: str, extensions: frozenset[str], root: Root, place: str) -> bool:
    """Whether the service can read the file, judged by the extension of its name or by its first bytes."""
    suffixes = PurePath(name).suffixes
    if not extensions.isdisjoint({"".join(suffixes[-1:]).lower(), "".join(suffixes[-2:]).lower()}):
        return True
    try:
        with opened(Path(place), root) as file:
            start = file.read(SNIFF_BYTES)
    except FileRefused:
        return True  # the error is reported when the file is read
    return is_text(start)


def is_text(start: bytes) -> bool:
    """Whether the first bytes of a file are UTF-8 text, perhaps cut within a character."""
    if b"\0" in start:
        return False
    try:
        start.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start >= len(start) - 3 and len(start) == SNIFF_BYTES
    return True
