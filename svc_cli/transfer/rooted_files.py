"""Opens a folder once, and everything in it through its descriptor, so that no link leads out of the folder.

Another program can put a link in the place of a file or folder at any time, so a path that was checked may lead
elsewhere when it is opened. Therefore each component of a path is opened inside the component before it, and the system
refuses to open a link (`O_NOFOLLOW`). To follow a link, its path is resolved first, and the result is opened in the
same way.
"""

import errno
import os
import stat
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from svc_cli.errors import UsageError
from svc_cli.given_files import PROJECT_FILE, absolute, find_repository
from svc_cli.settings import open_regular
from svc_cli.trust import NOT_TRUSTED
from svc_daemon.paths import AS_IT_IS, NO_LINK

#: Flags that open a file to read it.
READ: int = os.O_RDONLY | AS_IT_IS | NO_LINK
#: Flags that open a folder to list it.
LIST: int = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | NO_LINK
#: Linux can open a folder that may be entered but not listed, or a link itself.
_O_PATH: int = getattr(os, "O_PATH", 0)
#: Flags that open a folder only to open what is in it.
ENTER = LIST | _O_PATH
#: Maximum size of an ignore file. Matching each file with more patterns would take minutes.
RULES_BYTES = 1024 * 1024
#: The maximum length of a path on Linux. Other programs can't open a longer one.
PATH_BYTES = 4096
#: Maximum number of links on the way to a folder, as on Linux.
MOST_LINKS = 40


class Way(NamedTuple):
    """How the path of a folder leads to it."""

    #: The user id of the folder's owner.
    owner: int
    #: The folder and those of its parents that are links, as absolute paths.
    links: tuple[str, ...] = ()
    #: The user ids of the owners of all links on the way, also of those to which other links lead.
    link_owners: tuple[int, ...] = ()


class Reached(NamedTuple):
    """A folder or file that was opened by its path, and how the path led to it."""

    descriptor: int
    way: Way
    #: The path without links.
    real: Path
    #: All links on the way, each with the real path of the folder that it is in.
    links: tuple[tuple[str, Path], ...] = ()

    def find_way_out(self) -> str | None:
        """Return which link has led out of its repository, and where to; None if none has.

        A repository may be a stranger's, and so may be its links.
        """
        for link, folder in self.links:
            repository = find_repository(folder, (".git", PROJECT_FILE))
            if repository is not None and not self.real.is_relative_to(repository):
                return f"the link {link} leads out of the repository {repository}, to {self.real}"
        return None


class Root:
    """An open folder. What is in it is opened by its place, a relative path of which no component is a link."""

    def __init__(self, path: Path, *, is_kept: bool = True) -> None:
        """Open the folder. Links on the way to it are followed; `way_out` is set if one leads out of its repository.

        Raises OSError, and UsageError on Windows, which opens nothing inside of an open folder.
        Unless `is_kept`, the folder is opened again each time, and has to be the same folder.
        """
        if os.open not in os.supports_dir_fd:
            raise UsageError(
                f"{path}: folders are read and written on Linux and macOS, and on Windows in WSL.",
                hint="name the files to send, and write files with `>`; or run svc in WSL (`wsl --install`).",
            )
        self._given = path
        #: The absolute path, in which links are not resolved.
        self.path = absolute(path)
        self._path_bytes = len(os.fsencode(self.path)) + len("/\0")
        try:
            reached = _go(path)
        except OSError as error:  # it names only one component
            raise OSError(error.errno, error.strerror, str(path)) from error
        descriptor, self.way, self.real, _ = reached
        self.way_out = reached.find_way_out()
        closing = weakref.finalize(self, os.close, descriptor)
        #: The device and inode of the folder. `real` is its path without links when it was opened.
        self.identity = _identity_of(os.fstat(descriptor))
        self._descriptor = descriptor if is_kept else None
        if not is_kept:
            closing()

    @property
    def is_in_place(self) -> bool:
        """Whether the path still leads to this folder."""
        return identify_root(self.path) == self.identity

    def open(self, place: str, flags: int = READ) -> int:
        """Open a file or folder, and return its descriptor. Raises OSError, for example if a component is a link."""
        if self._path_bytes + len(os.fsencode(place)) > PATH_BYTES:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        *folders, name = place.rstrip("/").split("/")
        here = _go(self._given).descriptor if self._descriptor is None else os.dup(self._descriptor)
        try:
            if self._descriptor is None and _identity_of(os.fstat(here)) != self.identity:
                raise OSError(errno.ESTALE, "its folder was replaced")
            for folder in folders:
                inner = _open_in(here, folder, ENTER)
                os.close(here)
                here = inner
            return _open_in(here, name or os.curdir, flags)
        finally:
            os.close(here)

    @contextmanager
    def enter(self, place: str, flags: int = ENTER) -> "Iterator[EnteredFolder]":
        """Open a folder during the block. Raises OSError."""
        descriptor = self.open(place, flags)
        try:
            yield EnteredFolder(self, place, descriptor)
        finally:
            os.close(descriptor)

    def stat(self, place: str) -> os.stat_result:
        """Return the metadata of a file or folder. Raises OSError."""
        descriptor = self.open(place, READ | _O_PATH)
        try:
            return os.fstat(descriptor)
        finally:
            os.close(descriptor)

    def find(self, path: str) -> str | None:
        """Return the place to which the links in a relative path lead; None if that is outside the folder."""
        try:
            place = os.path.relpath(os.path.realpath(self.path / path), os.path.realpath(self.path))
        except OSError:  # a link was replaced meanwhile
            return None
        return None if f"{place}/".startswith("../") else "" if place == os.curdir else place


class EnteredFolder(NamedTuple):
    """A folder at a place inside a root, while it is open."""

    root: Root
    place: str
    descriptor: int

    def read_rules(self, name: str) -> bytes:
        """Return the bytes of an ignore file in this folder; empty if there is none.

        A link is followed if its target is inside the root. Raises OSError if the file can't be read, or is a pipe or
        a folder: without its rules, files would be sent that it excludes.
        """
        try:
            try:
                descriptor = os.open(name, READ, dir_fd=self.descriptor)
            except FileNotFoundError:
                return b""
            except OSError as error:
                if error.errno != errno.ELOOP:
                    raise
                target = self.root.find(str(Path(self.place, name)))
                if target is None:
                    raise OSError(errno.ELOOP, "it is a link that leads out of the folder") from error
                descriptor = self.root.open(target)
            with open_regular(descriptor) as file:
                rules = file.read(RULES_BYTES + 1)
        except OSError as error:
            raise OSError(errno.EACCES, f"{self.root.path / self.place / name}: {error.strerror}") from error
        if len(rules) > RULES_BYTES:
            where = self.root.path / self.place / name
            raise OSError(errno.EFBIG, f"{where}: it has more than {RULES_BYTES} bytes")
        return rules


def identify_root(folder: Path) -> str | None:
    """Return the device and inode of the folder; None if there is no such folder."""
    try:
        facts = folder.stat()
    except OSError:
        return None
    return _identity_of(facts) if stat.S_ISDIR(facts.st_mode) else None


def _identity_of(facts: os.stat_result) -> str:
    return f"{facts.st_dev}:{facts.st_ino}"


def _open_in(folder: int, name: str, flags: int) -> int:
    """Open what is in an open folder under this name. Raises OSError."""
    if name == os.pardir:
        raise OSError(errno.EXDEV, "its path leads out of the folder")
    try:
        return os.open(name, flags, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise OSError(error.errno, "a link or another file has taken its place") from error
        raise


def find_way_out(path: Path) -> str | None:
    """Return which link leads a path out of the link's repository, and where to.

    None if there is no such link, or if the path can't be opened; who opens it later has to look again.
    """
    try:
        reached = _go(path, READ)
    except OSError:
        return None
    os.close(reached.descriptor)
    return reached.find_way_out()


def refuse_way_out(path: Path, way_out: str | None, prevented: str = "sent") -> None:
    """Raise UsageError if a link in a path that the user named leads out of the link's repository."""
    if way_out is not None:
        real = os.path.realpath(path)
        raise UsageError(
            f"{path}: {way_out}; nothing was {prevented}.",
            code=NOT_TRUSTED,
            hint=f"a repository may be a stranger's; if you mean that place, name it by its real path: {real}",
        )


def open_named(path: Path) -> int:
    """Open a file that the user named to read it, and return its descriptor.

    Raises OSError, also if a link on the way leads out of the link's repository.
    """
    reached = _go(path, READ)
    if reached.find_way_out() is not None:
        os.close(reached.descriptor)
        raise OSError(errno.EXDEV, "a link on the way to it leads out of the link's repository")
    return reached.descriptor


def _go(path: Path, flags: int = ENTER) -> Reached:
    """Open a folder, or with the flags READ a file or folder, and record the way to it. Raises OSError."""
    if not _O_PATH:  # a folder on the way may not be listed, so only the system can follow the path
        return _go_by_system(path, flags)
    here, shown = os.open(path.anchor or os.curdir, ENTER), path.anchor
    real = Path("/") if path.anchor else Path.cwd()
    named, owners, links = [], [], []
    # The components that are left, last first, and whether they are of `path` or of the target of a link.
    waiting = [(name, True) for name in reversed(path.parts[bool(path.anchor) :])]
    try:
        while waiting:
            name, is_named = waiting.pop()
            shown = str(Path(shown) / name) if is_named else shown
            # A link of the kernel, such as that of /dev/stdin, may lead to what has no path.
            is_followed = not waiting and flags == READ and real.parts[1:2] == ("proc",)
            try:
                step = ENTER if waiting else flags & ~(NO_LINK * is_followed)
                inner = os.open(name, step, dir_fd=here)
                real = real.parent if name == os.pardir else real / name
            except OSError as error:
                if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                    raise
                target, owner = _read_link(here, name)
                named += [shown] if is_named else []
                owners.append(owner)
                links.append((shown if is_named else str(real / name), real))
                if len(owners) > MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
                inner, real = (os.open("/", ENTER), Path("/")) if target.startswith("/") else (os.dup(here), real)
                waiting += [(part, False) for part in reversed(target.split("/")) if part]
            os.close(here)
            here = inner
        way = Way(os.fstat(here).st_uid, tuple(named), tuple(sorted(set(owners))))
        return Reached(here, way, real, tuple(links))
    except BaseException:
        os.close(here)
        raise


def _go_by_system(path: Path, flags: int) -> Reached:
    descriptor = os.open(path, flags & ~NO_LINK)
    facts = [(str(each), os.lstat(each)) for each in (*reversed(path.parents), path)]
    found = {name: fact.st_uid for name, fact in facts if stat.S_ISLNK(fact.st_mode)}
    way = Way(os.fstat(descriptor).st_uid, tuple(found), tuple(sorted(set(found.values()))))
    links = tuple((name, Path(os.path.realpath(Path(name).parent))) for name in found)
    return Reached(descriptor, way, Path(os.path.realpath(path)), links)


def _read_link(folder: int, name: str) -> tuple[str, int]:
    """Return the target and owner of a link. Raises OSError if there is something else."""
    descriptor = os.open(name, _O_PATH | NO_LINK, dir_fd=folder)
    try:
        return os.readlink("", dir_fd=descriptor), os.fstat(descriptor).st_uid
    finally:
        os.close(descriptor)
