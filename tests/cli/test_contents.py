"""Reading files: one moment, whole, within the limit."""

import hashlib
import os
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from svc_cli.errors import FileRefused
from svc_cli.uploads.contents import ATTEMPTS, KEPT_BYTES, STDIN, read


def test_what_is_hashed_is_what_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(b"some bytes")
    content = read(path, 100)
    assert (content.data, content.sha256) == (b"some bytes", hashlib.sha256(b"some bytes").hexdigest())


def test_a_file_that_can_not_be_sent_is_refused_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "large").write_bytes(b"x" * 101)
    os.mkfifo(tmp_path / "pipe")
    codes = {"empty": "empty_file", "large": "file_too_large", "pipe": "svc_not_a_file", "none": "svc_file_unreadable"}
    for name, code in codes.items():
        with pytest.raises(FileRefused) as refused:
            read(tmp_path / name, 100)
        assert refused.value.code == code
    for size, code in ((0, "empty_file"), (101, "file_too_large")):
        monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(b"x" * size)))
        with pytest.raises(FileRefused) as refused:
            read(Path(STDIN), 100)
        assert refused.value.code == code
    assert read(tmp_path / "large", 101).size_bytes == 101, "exactly the limit"


FSTAT = os.fstat


def _write_while_read(monkeypatch: pytest.MonkeyPatch, path: Path, changes: int) -> None:
    """Have something appended to the file, so often, between the two looks at it of one reading."""
    path.write_bytes(b"start")
    looks: list[int] = []

    def fstat(descriptor: int) -> os.stat_result:
        facts = FSTAT(descriptor)
        looks.append(facts.st_size)
        if len(looks) % 2 and len(looks) < 2 * changes:
            with path.open("ab") as file:
                file.write(b"+")
        return facts

    monkeypatch.setattr("svc_cli.uploads.contents.os.fstat", fstat)


def test_a_file_is_read_again_until_it_holds_still_or_is_unstable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, pauses = tmp_path / "busy.log", list[float]()
    _write_while_read(monkeypatch, path, changes=1)
    assert (read(path, 1000, pauses.append).data, len(pauses)) == (b"start+", 1)
    _write_while_read(monkeypatch, path, changes=99)
    with pytest.raises(FileRefused) as refused:
        read(path, 1000, pauses.append)
    assert (refused.value.code, len(pauses)) == ("svc_file_unstable", ATTEMPTS)


def test_a_large_file_is_read_again_from_where_it_is_wanted(tmp_path: Path) -> None:
    path, data = tmp_path / "large.bin", os.urandom(KEPT_BYTES * 40)
    path.write_bytes(data)
    content = read(path, len(data))
    assert (content.data, content.sha256) == (None, hashlib.sha256(data).hexdigest())
    assert (content.whole(), b"".join(content.blocks(1_000_000))) == (data, data[1_000_000:])


@pytest.mark.parametrize("change", ["grown", "replaced", "gone"])
def test_a_file_that_changed_between_hashing_and_sending_is_refused(tmp_path: Path, change: str) -> None:
    path, data = tmp_path / "large.bin", os.urandom(KEPT_BYTES * 2)
    path.write_bytes(data)
    content = read(path, len(data))
    if change == "grown":
        path.write_bytes(data + b"more")
    elif change == "replaced":
        (tmp_path / "new").write_bytes(data)
        (tmp_path / "new").replace(path)
    else:
        path.unlink()
    with pytest.raises(FileRefused) as refused:
        content.whole()
    assert refused.value.code == ("svc_file_unreadable" if change == "gone" else "svc_file_unstable")
