"""Nothing phones home: no feature looks up a name, calls anything but loopback, or writes outside of its folders.

`strace` reports the system calls of a tour of all features, in a network namespace of its own where that is allowed.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path

import pytest

from tests.acceptance.forks import ROOT
from tests.acceptance.test_system_calls import can_trace

pytestmark = pytest.mark.skipif(not can_trace(), reason="no strace is installed, or it may not trace here")

#: The calls that send somewhere or listen.
_NETWORK = ("connect", "sendto", "sendmsg", "sendmmsg", "bind")
#: The calls that create, change or remove a file. A `?` stands before those that some processors don't have.
_FILES = (
    *("?open", "openat", "?openat2", "?creat", "?mkdir", "mkdirat", "?mknod", "mknodat", "truncate", "?rmdir"),
    *("?link", "linkat", "?symlink", "symlinkat", "?unlink", "unlinkat", "?rename", "?renameat", "renameat2"),
    *("?chmod", "fchmodat", "?chown", "?lchown", "fchownat", "setxattr", "lsetxattr", "utimensat"),
)
_CALL = re.compile(r"\d+ +(?P<name>\w+)\((?P<rest>.*)")
_WRITES = re.compile(r"\bO_(WRONLY|RDWR|CREAT|TRUNC|APPEND)\b")
#: A path of a call: the folder that it is relative to, if there is one, and the path itself.
_PATH = re.compile(r'(?:\w+<(?P<folder>[^>]*)>, )?"(?P<path>(?:[^"\\]|\\.)*)"')
_ADDRESS = re.compile(r'(?:inet_addr\(|inet_pton\(AF_INET6, )"(?P<host>[^"]+)"')
_PORT, _SOCKET = re.compile(r"sin6?_port=htons\((\d+)\)"), re.compile(r'sun_path=(@?"[^"]*")')
#: Asked for users and groups too, so a call of it is no sign that a name was looked up.
_NAME_CACHE = "nscd/socket"
_DNS = "53"
#: Programs and libraries find the user's folders by these.
_HOMES = ("HOME", *(f"XDG_{kind}_HOME" for kind in ("CACHE", "CONFIG", "DATA", "STATE")), "XDG_RUNTIME_DIR")
#: A program that does what the tour must not do, and what it may do. No packet is sent.
_CALLING_HOME = """
import os, socket, sys
from pathlib import Path

home, work = Path.home(), Path(sys.argv[1])
for address in (("192.0.2.1", 443), ("127.0.0.1", 53), ("127.0.0.1", 443)):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.connect_ex(address)
with socket.socket(socket.AF_UNIX) as sender:
    sender.connect_ex(str(home / "socket"))
socket.getaddrinfo("localhost", 443)
(work / "kept").write_text("")
(work / "moved").write_text("")
(work / "moved").rename(home / "moved")
folder = os.open(home, os.O_RDONLY)
os.close(os.open("id", os.O_WRONLY | os.O_CREAT, dir_fd=folder))
"""


def faults(log: Path, *folders: Path) -> Iterator[str]:
    """Yield what a log of `strace` has of lookups, foreign addresses and writes outside of these folders."""
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        call = _CALL.fullmatch(line)
        if call is None:
            continue
        name, rest = call.groups()
        if name in _NETWORK:
            yield from (f"{name} to {each}" for each in _foreign_addresses(rest, folders))
        elif not name.startswith("open") or _WRITES.search(rest):
            yield from (f"{name} of {path}" for path in _paths(name, rest) if not _is_ours(path, folders))
        elif '"/etc/resolv.conf"' in rest:
            yield "a lookup of a name"


def _foreign_addresses(call: str, folders: Sequence[Path]) -> Iterator[str]:
    port = next(iter(_PORT.findall(call)), "")
    yield from (
        f"{host} port {port}" for host in _ADDRESS.findall(call) if not ip_address(host).is_loopback or port == _DNS
    )
    for path in _SOCKET.findall(call):
        if _NAME_CACHE not in path and not _is_ours(path.strip('"'), folders):
            yield path


def _paths(name: str, call: str) -> Iterator[str]:
    found = [os.path.normpath(Path(each["folder"] or "/", each["path"])) for each in _PATH.finditer(call)]
    # The first path of a symbolic link is only its content.
    yield from found[name.startswith("symlink") :]


def _is_ours(path: str, folders: Sequence[Path]) -> bool:
    """Whether the file may be written: below a folder, a compiled module, or no file but the kernel's."""
    is_below = any(Path(path).is_relative_to(folder) for folder in folders)
    return is_below or "__pycache__" in path or path.startswith(("/proc/", "/dev/null", "/dev/tty"))


def _isolating() -> Sequence[str]:
    """Return the command that runs another one in a network namespace of its own, as root or as any user; or none."""
    for words in (("unshare", "--net"), ("unshare", "--map-root-user", "--net")):
        with suppress(FileNotFoundError):
            if subprocess.run([*words, "true"], check=False, capture_output=True).returncode == 0:
                return words
    return ()


def _trace(folder: Path, *words: str) -> list[str]:
    """Run Python, which may write to `work` and `tmp` in the folder, and return its faults, each once."""
    homes, own = folder / "home", (folder / "work", folder / "tmp")
    for each in (homes, *own):
        each.mkdir()
    log, calls = folder / "calls", ",".join((*_NETWORK, *_FILES))
    ran = subprocess.run(
        [
            *("strace", "-f", "-y", "-qq", "--seccomp-bpf", "-e", "signal=none", "-e", f"trace={calls}", "-o", log),
            *(*_isolating(), sys.executable, *words),
        ],
        # A variable that turns something off must be of our own making.
        env={**dict.fromkeys(_HOMES, str(homes)), "TMPDIR": str(own[1]), "PYTHONPATH": str(ROOT), "PATH": os.defpath},
        cwd=own[0],
        check=False,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    return sorted(set(faults(log, *own)))


def test_no_feature_looks_up_a_name_calls_another_machine_or_writes_outside_of_its_folders(tmp_path: Path) -> None:
    assert _trace(tmp_path, "-m", "tests.acceptance.tours", str(tmp_path / "work")) == []
    assert list((tmp_path / "home").iterdir()) == []


def test_lookups_foreign_addresses_and_foreign_files_are_noticed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert _trace(tmp_path, "-c", _CALLING_HOME, str(tmp_path / "work")) == [
        "a lookup of a name",
        f'connect to "{home}/socket"',
        "connect to 127.0.0.1 port 53",
        "connect to 192.0.2.1 port 443",
        f"openat of {home}/id",
        f"rename of {home}/moved",
    ]
