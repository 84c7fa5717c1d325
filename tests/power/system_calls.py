"""Runs a program under strace, and reads the calls that change files or sync them."""

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.acceptance.installations import wait_until

STRACE = shutil.which("strace") or ""
#: All calls by which a program can change a file's content or name, or make it durable.
CALLS = (
    *(
        "open",
        "openat",
        "openat2",
        "creat",
        "lseek",
        "write",
        "writev",
        "pwrite64",
        "pwritev",
        "pwritev2",
        "ftruncate",
        "truncate",
    ),
    *("rename", "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat", "unlink", "unlinkat", "rmdir"),
    *("mkdir", "mkdirat", "fsync", "fdatasync", "syncfs", "fallocate", "mmap", "sendfile", "copy_file_range", "splice"),
)
#: Only successful calls are written (`-z`), each as one line when it ends, with all bytes as `\x00`.
OPTIONS = ("-D", "-f", "-qq", "--seccomp-bpf", "-z", "-ttt", "-T", "-y", "-xx", "-s", str(2**26), "-a", "1")
_LINE = re.compile(rb"\d+ +(\d+\.\d+) (\w+)\((.*)\) = (\w+)(?:<([^>]*)>)?.*<(\d+\.\d+)>\n")
_DESCRIPTOR = re.compile(rb"(\d+|AT_FDCWD)(?:<([^>]*)>(\(deleted\))?)?$")
#: A call with a path that is relative to the current folder, which strace doesn't print then.
_RELATIVE = re.compile(rb"\d+ +\d+\.\d+ (?:truncate|rename|link|unlink|rmdir|mkdir)\((?:[^,)]*, )?\"(?!\\x2f)")
_BUFFER = re.compile(rb'iov_base="([^"]*)"')


@dataclass(frozen=True, slots=True)
class Call:
    """A successful system call."""

    began_s: float
    ended_s: float
    name: str
    arguments: list[bytes]
    result: int
    #: The path of the descriptor that the call returned.
    opened: str

    def descriptor(self, index: int = 0) -> tuple[int, str]:
        """Return the number and the path of a descriptor; the path is empty if the file was deleted."""
        found = _DESCRIPTOR.match(self.arguments[index])
        if found is None:
            raise ValueError(f"{self.arguments[index]!r} is no descriptor")
        return -1 if found[1] == b"AT_FDCWD" else int(found[1]), "" if found[3] else _decode(found[2] or b"")

    def path(self, index: int, folder: int | None = None) -> str:
        """Return the path in an argument, which may be relative to the descriptor in the argument `folder`."""
        return str(Path("" if folder is None else self.descriptor(folder)[1], os.fsdecode(self.data(index))))

    def data(self, index: int) -> bytes:
        """Return the bytes in an argument, which may be a list of buffers."""
        text = self.arguments[index]
        parts = _BUFFER.findall(b", ".join(self.arguments)) if text.startswith(b"[") else [text.strip(b'"')]
        return b"".join(bytes.fromhex(part.decode().replace("\\x", "")) for part in parts)

    def flags(self, index: int) -> set[bytes]:
        return set(self.arguments[index].split(b"|"))


class Tracer:
    """A command that runs another one and writes its calls to a file."""

    def __init__(self, out: Path) -> None:
        self._out = out
        #: Put before the command, which keeps the process id.
        self.launcher = (STRACE, *OPTIONS, "-e", f"trace={','.join(CALLS)}", "-o", str(out))

    def read_calls(self, root: Path) -> list[Call]:
        """Wait for the end of the tracer, and return the calls that name a path below `root`."""
        wait_until(lambda: not _is_open(self._out), "the end of strace")
        mark = encode(os.fsencode(root))
        # What another thread has interrupted goes on in the next line.
        lines = self._out.read_bytes().replace(b" <unfinished ...>\n", b"").splitlines(keepends=True)
        if relative := [line for line in lines if _RELATIVE.match(line)]:
            raise ValueError(f"it is not known which file this changes: {relative[0][:200]!r}")
        return [_parse(line) for line in lines if mark in line]


def encode(text: bytes) -> bytes:
    """Return the bytes as strace writes them."""
    return b"".join(b"\\x%02x" % byte for byte in text)


def _is_open(path: Path) -> bool:
    """Whether a process has the file open."""
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if os.readlink(link) == str(path):  # noqa: PTH115 - much faster
                return True
        except OSError:
            continue
    return False


def _parse(line: bytes) -> Call:
    found = _LINE.fullmatch(line)
    if found is None:
        raise ValueError(f"strace has written {line[:200]!r}")
    began, name, arguments, result, opened, took = found.groups()
    began_s = float(began)
    return Call(
        began_s, began_s + float(took), name.decode(), arguments.split(b", "), int(result, 0), _decode(opened or b"")
    )


def _decode(text: bytes) -> str:
    return os.fsdecode(bytes.fromhex(text.decode().replace("\\x", ""))) if text.startswith(b"\\x") else text.decode()
