"""The directories and files of an installation, for the daemon and the command line."""

import errno
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs

APP = "svc"
#: The most characters of a file that is read into memory at once.
MOST_CHARACTERS = 1024 * 1024
#: Flags that open what may be anything: a pipe without waiting for its other end, and on Windows bytes as they are.
AS_IT_IS: int = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
#: The flag that opens no link. Windows has none.
NO_LINK: int = getattr(os, "O_NOFOLLOW", 0)


def data_dir(environ: Mapping[str, str]) -> Path:
    """Return the daemon's data directory: `SVC_DATA_DIR`, else the platform's user data directory."""
    return _folder(environ, "SVC_DATA_DIR", platformdirs.user_data_dir, ".local/share")


def config_dir(environ: Mapping[str, str]) -> Path:
    """Return the directory of settings and stored keys: `SVC_CONFIG_DIR`, else the user's config directory."""
    return _folder(environ, "SVC_CONFIG_DIR", platformdirs.user_config_dir, ".config")


def state_dir(environ: Mapping[str, str]) -> Path:
    """Return the directory of the command line's own state: `SVC_STATE_DIR`, else the user's state directory."""
    return _folder(environ, "SVC_STATE_DIR", platformdirs.user_state_dir, ".local/state")


def is_default_data_dir(environ: Mapping[str, str]) -> bool:
    """Whether this is the default installation. Only the default installation listens on the well-known port."""
    return data_dir(environ) == data_dir({})


def open_own(path: Path, flags: int) -> int:
    """Open a file of the data directory, created with mode 0600 by `O_CREAT`. Raises OSError.

    Somebody may have put a link, or a second name of another file, in its place: neither is opened.
    """
    words = "it is a link, or not a file of its own; remove it"
    try:
        descriptor = os.open(path, flags | NO_LINK | AS_IT_IS, 0o600)
    except OSError as error:
        raise OSError(error.errno, words if error.errno == errno.ELOOP else error.strerror, str(path)) from error
    found = os.fstat(descriptor)
    # A file that was just removed has no name left.
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        os.close(descriptor)
        raise OSError(errno.ELOOP, words, str(path))
    return descriptor


def read_own(path: Path) -> str:
    """Read a small file of the data directory, like `open_own`. Raises OSError or UnicodeDecodeError."""
    with os.fdopen(open_own(path, os.O_RDONLY), encoding="utf-8") as file:
        return file.read(MOST_CHARACTERS)


def opens_folders() -> bool:
    """Whether the system opens folders, and what is in them through their descriptors. Windows doesn't."""
    return os.open in os.supports_dir_fd


def sync_folder(folder: Path) -> None:
    """Fsync a folder, so that its directory entries are durable, if the system opens folders."""
    if not opens_folders():
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Create a folder with mode 0700, and its missing parents, durably: a power cut can't take their names."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for each in missing:
        sync_folder(each.parent)


def _folder(environ: Mapping[str, str], name: str, user_folder: Callable[[str], str], below_home: str) -> Path:
    named = environ.get(name)
    try:
        return Path(named or user_folder(APP)).expanduser().absolute()
    except RuntimeError as error:
        if named:
            raise FileNotFoundError(errno.ENOENT, "there is no such home folder", f"{name}={named}") from error
        # The user has no home, as in a container: the root takes its place, which is what Docker gives such a user.
        return Path("/", below_home, APP)


@dataclass(frozen=True, slots=True)
class DataFiles:
    """Every path inside one data directory."""

    root: Path

    @property
    def daemon(self) -> Path:
        """A JSON file with facts about the running daemon, such as its process id and base URL."""
        return self.root / "daemon.json"

    @property
    def admin_key(self) -> Path:
        """The first team's admin key (0600), written at first start."""
        return self.root / "admin.key"

    @property
    def secret(self) -> Path:
        """The installation's secret (0600), from which upload tokens and webhook secrets are derived."""
        return self.root / "secret"

    @property
    def operator_token(self) -> Path:
        """The token for `/admin` (0600), created at each start."""
        return self.root / "operator.token"

    @property
    def fault_lab(self) -> Path:
        """The file that marks a directory created with `--faults`, which contains only test data."""
        return self.root / "fault.lab"

    @property
    def state(self) -> Path:
        return self.root / "state.db"

    @property
    def blobs(self) -> Path:
        return self.root / "blobs"

    @property
    def staging(self) -> Path:
        return self.root / "staging"

    @property
    def parts(self) -> Path:
        """The bytes of open upload sessions."""
        return self.root / "parts"

    @property
    def aside(self) -> Path:
        """The folder for stored files that the database doesn't name. It has a subfolder for each day."""
        return self.root / "aside"

    @property
    def held(self) -> Path:
        """Removed files that a backup may still need; see `store.files.removals`."""
        return self.root / "held"

    @property
    def restoring(self) -> Path:
        """The data of an incomplete `svc-daemon restore`."""
        return self.root / "restoring"

    @property
    def damaged(self) -> Path:
        """Corrupt files that `svc-daemon verify --repair` has moved here."""
        return self.root / "damaged"

    @property
    def scratch(self) -> Path:
        """Private folders for extracting documents; emptied at startup."""
        return self.root / "scratch"

    @property
    def index(self) -> Path:
        """The search indexes, one per team. They can be rebuilt."""
        return self.root / "index"

    @property
    def models(self) -> Path:
        """The installed embedding model."""
        return self.root / "models"

    @property
    def log(self) -> Path:
        return self.root / "log" / "daemon.log"
