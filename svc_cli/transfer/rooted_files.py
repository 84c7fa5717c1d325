"""Opens a folder once, and everything in it through its descriptor, so that no link leads out of the folder.

Another program can put a link in the place of a file or folder at any time, so a path that was checked may lead
elsewhere when it is opened. Therefore each component of a path is opened inside the component before it, and the system
refuses to open a link (`O_NOFOLLOW`). To follow a link, its path is resolved first, and the result is opened in the
same way.

Windows opens no folders. There each component is looked at before and after something is opened by its path, none may
be a link or a junction, and the file that was opened has to be the one that the path leads to.
"""

import errno
import os
import stat
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePath
from typing import NamedTuple

from svc_cli.errors import UsageError
from svc_cli.given_files import PROJECT_FILE, absolute, find_repository
from svc_cli.settings import NOT_TRUSTED, open_regular
from svc_daemon.paths import AS_IT_IS, NO_LINK, opens_folders

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
#: The bit of a reparse point of Windows that stands for another path, unlike those of files in a cloud.
_NAME_SURROGATE = 0x20000000
_TAKEN = "a link or another file has taken its place"
_LEADS_OUT = "its path leads out of the folder"


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

    #: -1 for a folder on a system that opens none.
    descriptor: int
    facts: os.stat_result
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

        Raises OSError. Unless `is_kept`, the folder is opened again each time, and has to be the same folder. That is
        so, too, on a system that opens no folders.
        """
        self._given = path
        #: The absolute path, in which links are not resolved.
        self.path = absolute(path)
        self._path_bytes = len(os.fsencode(self.path)) + len("/\0")
        try:
            reached = _go(path)
        except OSError as error:  # it names only one component
            raise OSError(error.errno, error.strerror, str(path)) from error
        descriptor, facts, self.way, self.real, _ = reached
        self.way_out = reached.find_way_out()
        #: The device and inode of the folder. `real` is its path without links when it was opened.
        self.identity = _identity_of(facts)
        self._descriptor = descriptor if is_kept else None
        if descriptor >= 0:
            closing = weakref.finalize(self, os.close, descriptor)
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
        if not opens_folders():
            path, before = self.look(place)
            with ExitStack() as opened:
                opened.callback(os.close, descriptor := os.open(path, flags))
                if not all(os.path.samestat(before, now) for now in (os.fstat(descriptor), self.look(place)[1])):
                    raise OSError(errno.ELOOP, _TAKEN)
                opened.pop_all()
            return descriptor
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
        if not opens_folders():
            if not stat.S_ISDIR(self.look(place)[1].st_mode):
                raise OSError(errno.ENOTDIR, _TAKEN)
            yield EnteredFolder(self, place, None)
            return
        descriptor = self.open(place, flags)
        try:
            yield EnteredFolder(self, place, descriptor)
        finally:
            os.close(descriptor)

    def stat(self, place: str) -> os.stat_result:
        """Return the metadata of a file or folder. Raises OSError."""
        if not opens_folders():
            return self.look(place)[1]
        descriptor = self.open(place, READ | _O_PATH)
        try:
            return os.fstat(descriptor)
        finally:
            os.close(descriptor)

    def find(self, path: str) -> str | None:
        """Return the place to which the links in a relative path lead; None if that is outside the folder."""
        try:
            place = os.path.relpath(os.path.realpath(self.path / path), os.path.realpath(self.path))
        except (OSError, ValueError):  # a link was replaced meanwhile, or leads to another drive of Windows
            return None
        place = PurePath(place).as_posix()
        return None if f"{place}/".startswith("../") else "" if place == os.curdir else place

    def look(self, place: str) -> tuple[str, os.stat_result]:
        """Return the path of a file or folder, and its metadata, on a system that opens no folders.

        Raises OSError, for example if a component is a link.
        """
        if identify_root(self.real) != self.identity:
            raise OSError(errno.ESTALE, "its folder was replaced")
        path, facts, parts = str(self.real), os.lstat(self.real), PurePath(place).parts
        # On Windows, what has a colon is a place on another drive, or a second stream of a file.
        if PurePath(place).anchor or os.pardir in parts or ":" in place:
            raise OSError(errno.EXDEV, _LEADS_OUT)
        for name in parts:
            path = str(Path(path, name))
            facts = os.lstat(path)
            if stat.S_ISLNK(facts.st_mode) or _is_reparsed(facts):
                raise OSError(errno.ELOOP, _TAKEN)
        return path, facts


class EnteredFolder(NamedTuple):
    """A folder at a place inside a root, while it is open."""

    root: Root
    place: str
    #: None on a system that opens no folders.
    descriptor: int | None

    @property
    def device(self) -> int | None:
        """The device of the folder; None on a system that opens no folders, where a mounted disk is a link."""
        return None if self.descriptor is None else os.fstat(self.descriptor).st_dev

    def at(self, name: str) -> str:
        """Return what names a file of this folder in calls that also get `descriptor` as `dir_fd`. Raises OSError."""
        return name if self.descriptor is not None else str(Path(self.root.look(self.place)[0], name))

    def list(self) -> "list[os.DirEntry[str]]":
        """Return the entries, which are valid while the folder is open. Raises OSError."""
        if self.descriptor is not None:
            with os.scandir(self.descriptor) as entries:
                return list(entries)
        path, before = self.root.look(self.place)
        with os.scandir(path) as entries:
            found = list(entries)
        if not os.path.samestat(before, self.root.look(self.place)[1]):
            raise OSError(errno.ELOOP, _TAKEN)
        return found

    def read_rules(self, name: str) -> bytes:
        """Return the bytes of an ignore file in this folder; empty if there is none.

        A link is followed if its target is inside the root. Raises OSError if the file can't be read, or is a pipe or
        a folder: without its rules, files would be sent that it excludes.
        """
        try:
            try:
                here = self.descriptor
                inner = str(PurePath(self.place, name))
                descriptor = self.root.open(inner) if here is None else os.open(name, READ, dir_fd=here)
            except FileNotFoundError:
                return b""
            except OSError as error:
                if error.errno != errno.ELOOP:
                    raise
                target = self.root.find(inner)
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


def is_link(found: "os.DirEntry[str] | Path") -> bool:
    """Whether something is a link or, on Windows, a junction, which Python takes for a folder."""
    if opens_folders() or found.is_symlink():
        return found.is_symlink()
    try:
        return _is_reparsed(found.stat(follow_symlinks=False))
    except OSError:
        return False


def _is_reparsed(facts: os.stat_result) -> bool:
    """Whether Windows goes elsewhere for what has this metadata."""
    is_reparsed = getattr(facts, "st_file_attributes", 0) & stat.FILE_ATTRIBUTE_REPARSE_POINT
    return bool(is_reparsed and getattr(facts, "st_reparse_tag", _NAME_SURROGATE) & _NAME_SURROGATE)


def _open_in(folder: int, name: str, flags: int) -> int:
    """Open what is in an open folder under this name. Raises OSError."""
    if name == os.pardir:
        raise OSError(errno.EXDEV, _LEADS_OUT)
    try:
        return os.open(name, flags, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise OSError(error.errno, _TAKEN) from error
        raise


def find_way_out(path: Path) -> str | None:
    """Return which link leads a path out of the link's repository, and where to.

    None if there is no such link, or if the path can't be opened; who opens it later has to look again.
    """
    try:
        reached = _go(path, is_folder=False)
    except OSError:
        return None
    if reached.descriptor >= 0:
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
    reached = _go(path, is_folder=False)
    if reached.descriptor < 0:
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
    if reached.find_way_out() is not None:
        os.close(reached.descriptor)
        raise OSError(errno.EXDEV, "a link on the way to it leads out of the link's repository")
    return reached.descriptor


def _go(path: Path, *, is_folder: bool = True) -> Reached:
    """Open a folder or, unless `is_folder`, a file or folder to read it, and record the way to it. Raises OSError."""
    if not _O_PATH or not opens_folders():
        # Some folder on the way may be entered but not listed, so only the system can follow the path.
        return _go_by_system(path, is_folder=is_folder)
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
            is_followed = not waiting and not is_folder and real.parts[1:2] == ("proc",)
            try:
                step = ENTER if waiting or is_folder else READ & ~(NO_LINK * is_followed)
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
        facts = os.fstat(here)
        way = Way(facts.st_uid, tuple(named), tuple(sorted(set(owners))))
        return Reached(here, facts, way, real, tuple(links))
    except BaseException:
        os.close(here)
        raise


def _go_by_system(path: Path, *, is_folder: bool) -> Reached:
    facts, descriptor = os.stat(path), -1  # noqa: PTH116 - as the others
    if is_folder and not stat.S_ISDIR(facts.st_mode):
        raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    if opens_folders() or not stat.S_ISDIR(facts.st_mode):
        descriptor = os.open(path, (ENTER if is_folder else READ) & ~NO_LINK)
        facts = os.fstat(descriptor)
    stations = [(str(each), os.lstat(each)) for each in (*reversed(path.parents), path)]
    found = {name: fact.st_uid for name, fact in stations if stat.S_ISLNK(fact.st_mode) or _is_reparsed(fact)}
    way = Way(facts.st_uid, tuple(found), tuple(sorted(set(found.values()))))
    links = tuple((name, Path(os.path.realpath(Path(name).parent))) for name in found)
    return Reached(descriptor, facts, way, Path(os.path.realpath(path)), links)


def _read_link(folder: int, name: str) -> tuple[str, int]:
    """Return the target and owner of a link. Raises OSError if there is something else."""
    descriptor = os.open(name, _O_PATH | NO_LINK, dir_fd=folder)
    try:
        return os.readlink("", dir_fd=descriptor), os.fstat(descriptor).st_uid
    finally:
        os.close(descriptor)
