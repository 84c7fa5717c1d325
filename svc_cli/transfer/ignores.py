"""The rules of ignore files: which files of a folder are left out, and by which rule.

Git's rules apply: files in an ignored folder are left out, because the folder is not entered.
"""

import errno
import os
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

from svc_cli.given_files import find_repository
from svc_cli.transfer.globs import Glob
from svc_cli.transfer.rooted_files import Root

#: Read in this order. The last pattern that matches decides, so `.svcignore` takes precedence.
IGNORE_FILES = (".gitignore", ".svcignore")
#: Finds a byte that was no UTF-8.
ESCAPED = re.compile("[\udc80-\udcff]").search
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
    def parse(cls, data: bytes) -> Self:
        """Parse an ignore file. Raises ValueError if it is no UTF-8 text; in comments, other bytes do no harm."""
        text = data.decode("utf-8", errors="surrogateescape").removeprefix("\ufeff")
        lines = [line.removesuffix("\r") for line in text.split("\n" if "\n" in text else "\r")]
        if "\0" in text or any(ESCAPED(line) for line in lines if not line.startswith("#")):
            raise ValueError("it is not UTF-8 text")
        return cls(lines)

    def find(self, path: str, *, is_folder: bool) -> Pattern | None:
        """Return the last pattern that matches this `/`-separated path, or None."""
        number = self._find(path, is_folder=is_folder)
        return self.all[number] if number >= 0 else None

    def is_in(self, folder: Path) -> bool:
        """Whether one of the patterns is the path of something in the folder."""
        places = (each.glob.literal for each in self.all if each.is_path)
        return any(place is not None and os.path.lexists(folder / place) for place in places)

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

        `read` returns the bytes of a file in the folder; empty if there is none. Raises OSError if a file can't be
        understood: without its rules, files would be sent that it excludes.
        """
        rules = self
        for name in IGNORE_FILES:
            try:
                patterns = Patterns.parse(read(name))
            except ValueError as error:
                raise OSError(errno.EILSEQ, f"{folder / name}: {error}") from error
            if patterns.all:
                rules = rules.under(folder, patterns, str(folder / name))
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
    rules, ignored_by = inherit(folder)
    if ignored_by is not None:
        everything = Patterns(["*"])
        everything.all = (everything.all[0]._replace(text=ignored_by[1].text),)
        return rules.under(folder, everything, ignored_by[0])
    real = Path(os.path.realpath(folder))
    if real == folder:
        return rules
    start, inside = len(str(folder).rstrip(os.sep)) + 1, f"{real}{os.sep}"
    moved = (each._replace(behind=start, before=inside[each.behind :]) for each in inherit(real)[0].layers)
    return IgnoreRules((*rules.layers, *moved))


def inherit(folder: Path) -> tuple[IgnoreRules, tuple[str, Pattern] | None]:
    """Return the rules above a folder, and the rule, with its origin, that ignores the folder or one of its parents."""
    root, rules = find_repository(folder), IgnoreRules()
    if root is None or root == folder:
        return rules, None
    repository = Root(root)
    for parent in reversed((folder / "_").relative_to(root).parents):
        found = rules.find(str(root / parent), is_folder=True)
        if found is not None and not found[1].keeps:
            return rules, found
        if root / parent != folder:
            rules = rules.at(repository, str(parent))
    return rules, None


def spellings(pattern: str, folder: Path) -> list[str]:
    """Return the pattern of a setting or flag and, if it is a path, how an ignore file in `folder` would write it.

    A shell completes `./drafts/`, `docs/drafts/` and `/users/ann/docs/drafts/`, which all mean `/drafts/` in `docs`. A
    path that exists in the folder as it is written means that place only.
    """
    mark, path = ("!", pattern[1:]) if pattern.startswith("!") else ("", pattern)
    path = path.replace(os.sep, "/")  # a shell of Windows completes `.\\drafts\\`
    end = "/" * path.rstrip(" ").endswith("/")
    written = Path(path).expanduser().as_posix() if path.startswith("~/") else path
    written = os.path.splitdrive(written)[1]
    parts: list[str] = []
    for part in written.rstrip(" ").split("/"):
        if part == os.pardir:
            del parts[-1:]
        elif part not in ("", os.curdir):
            parts.append(part)
    found = list(dict.fromkeys((pattern, mark + path)))
    if "/".join(parts) + end != written.strip(" ").removeprefix("/"):
        found.append(f"{mark}/{'/'.join(parts)}{end}")
    if len(parts) < 2 or os.path.lexists(folder.joinpath(*parts)):
        return found
    for base in {folder.parts[1:], Path(os.path.realpath(folder)).parts[1:]}:
        tails = (len(base),) if written.startswith("/") else range(1, len(base) + 1)
        fitting = [each for each in tails if 0 < each < len(parts) and tuple(parts[:each]) == base[-each:]]
        found += [f"{mark}/{'/'.join(parts[each:])}{end}" for each in fitting]
    return found


#: Finds a character that Unicode can encode in several ways, such as `K`, which is also the Kelvin sign.
has_twins = re.compile(r"[^\x00-\x7f]|[K;`]").search
