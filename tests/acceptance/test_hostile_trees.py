"""A folder of hostile names and of things that can't be read: `upload` and `sync` say the same, and all is listed."""

import os
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from svc_daemon.wire.file_names import find_flaw
from tests.acceptance.installations import Finished, Installation

Json = dict[str, Any]

#: Root reads everything, unless a process gave up the right to before it became `svc`.
_WITHOUT_ROOTS_RIGHTS = """
import ctypes, os, sys
for right in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
    ctypes.CDLL(None).prctl(24, right, 0, 0, 0)  # PR_CAPBSET_DROP
os.execv(sys.executable, [sys.executable, "-m", "svc_cli", *sys.argv[1:]])
"""

GOOD = ("plain.md", "A.md", "a.md", "👩\u200d💻.md", "\u0646\u0645\u06cc\u200c\u062e.md", "sub/deep/end.md")
REFUSED = (
    *("zero\u200bwidth.md", "right\u202eto left.md", "line\nbreak.md", "joiner.md\u200d", "soft\u00adhyphen.md"),
    *("back\\", "climbs\\..\\a.md", " ", "\u0958" * 84 + ".md"),
)
TWICE = ("caf\u00e9.md", "\u00e9/in.md", "empty \u00fc.md", "f\u0131n\u00e9\u200b.md")


@pytest.fixture
def tree(installation: Installation) -> Iterator[Path]:
    """The folder; its doors are opened again at the end."""
    folder = installation.root / "tree"
    for name in (*GOOD, *REFUSED, *(unicodedata.normalize(form, name) for name in TWICE for form in ("NFC", "NFD"))):
        _write(folder / name, "" if name.startswith("empty") else f"Words about {name.encode()!r}.")
    _write(Path(os.fsdecode(os.fsencode(folder) + b"/latin-\xe9.md")), "Words.")
    _write(folder / "odd\u200bfolder" / "x.md", "Words.")
    _write(folder / ".hidden.md", "Words.")
    _write(folder / "empty.md", "")
    _write(folder / "ignored.md", "Words.")
    _write(folder / ".svcignore", "ignored*\n")
    _write(folder / "/".join(["n" * 200] * 6) / "far.md", "Words.")
    (folder / "picture.png").write_bytes(b"\x89PNG\0")
    with (folder / "large.md").open("wb") as large:
        large.truncate(26 * 1024 * 1024)
    (folder / "link.md").symlink_to("plain.md")
    (folder / "ignored-link.md").symlink_to("plain.md")
    (folder / "link").symlink_to("sub")
    (folder / "dead.md").symlink_to("nowhere")
    (folder / "behind a door.md").symlink_to("listed only/inside.md")
    os.mkfifo(folder / "pipe.md")
    os.mkfifo(folder / "sub" / ".gitignore")
    _write(folder / "closed.md", "Words.")
    _write(folder / "closed" / "inside.md", "Words.")
    _write(folder / "listed only" / "inside.md", "Words.")
    doors = [(folder / "closed.md", 0), (folder / "closed", 0), (folder / "listed only", 0o444)]
    for path, mode in doors:
        path.chmod(mode)
    yield folder
    for path, _ in doors:
        path.chmod(0o700)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _svc(installation: Installation, *words: str) -> Finished:
    """Run `svc` as somebody whom the system refuses what it refuses others."""
    command = [sys.executable, "-c", _WITHOUT_ROOTS_RIGHTS, *words]
    ended = subprocess.run(
        command,
        env=installation.environ,
        cwd=installation.root,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    return Finished(ended.returncode, ended.stdout, ended.stderr)


def _verdicts(finished: Finished) -> dict[str, tuple[str, str | None, str | None]]:
    """By path below the tree: what was done, why it was skipped, why it failed."""
    items = finished.json["items"]
    told = {
        each["path"].removeprefix("tree/"): (each["action"], each["reason"], (each["error"] or {}).get("message"))
        for each in items
    }
    assert len(told) == len(items), "each item has a path of its own"
    return told


def _left_out(paths: set[str], folder: Path) -> list[str]:
    """The files of the folder that no path speaks of, nor one of a folder around them."""
    spelled = {path: path.encode("ascii", "backslashreplace").decode() for path in _files(folder)}
    composed = {path: unicodedata.normalize("NFC", path) for path in spelled}
    known = {*paths, *(path.encode("ascii", "backslashreplace").decode() for path in paths)}
    return [
        path
        for path in spelled
        if not {path, spelled[path], composed[path]} & known
        and not any(folder + "/" in known for folder in map(str, Path(composed[path]).parents))
    ]


def _files(folder: Path) -> list[str]:
    return [os.path.relpath(Path(top, name), folder) for top, _, names in os.walk(folder) for name in names]


def test_upload_and_sync_give_one_verdict_on_each_and_are_silent_about_none(
    installation: Installation, tree: Path
) -> None:
    uploaded = _svc(installation, "upload", "tree", "-b", "uploaded", "--json")
    synced = _svc(installation, "sync", "tree", "-b", "synced", "--json")
    assert (uploaded.exit, synced.exit) == (3, 3), uploaded.stderr + synced.stderr
    told = _verdicts(uploaded)
    assert told == _verdicts(synced)
    assert _left_out(set(told), tree) == []
    assert {path for path, (action, _, _) in told.items() if action == "created"} == {
        *GOOD,
        *("caf\u00e9.md", "\u00e9/in.md"),
    }
    denied = (None, "can't be read: Permission denied.")
    assert (told["closed/"][1:], told["listed only/inside.md"][1:]) == (denied, denied)
    assert told["closed.md"][0] == "failed"
    assert told["behind a door.md"][1] == "link"
    # Of two spellings the first by code points is sent; the other is listed as what it is.
    assert told[r"caf\xe9.md"][1] == "another file has this name, spelled with other code points"
    for finished in (uploaded, synced):
        for error in (each["error"] for each in finished.json["items"] if each["error"]):
            assert set(error) == {"code", "message", "retryable", "details", "hint", "request_id"}


def test_a_link_behind_a_door_is_followed_to_the_door_and_ends_nothing(installation: Installation, tree: Path) -> None:
    told = _verdicts(_svc(installation, "sync", "tree", "-b", "followed", "--follow-links", "--json"))
    assert told["behind a door.md"] == ("failed", None, "can't be read: Permission denied.")
    assert told["plain.md"][0] == "created"


def test_the_service_gives_the_same_verdict_on_a_name(installation: Installation, tree: Path) -> None:
    with installation.client() as client:
        client.put("/v1/buckets/names", json={}).raise_for_status()
        for name in (*GOOD, *REFUSED):
            opened = client.post(
                "/v1/buckets/names/uploads",
                json={"filename": name, "title": "t", "size_bytes": 6, "mime": "text/plain"},
            )
            assert (opened.status_code == 400) is (find_flaw(name) is not None) is (name in REFUSED), (
                name,
                opened.text,
            )


def test_a_folder_that_cannot_be_read_is_named(installation: Installation, tree: Path) -> None:
    for words in (("upload", "tree/closed"), ("sync", "tree/closed")):
        finished = _svc(installation, *words, "-b", "closed", "--json")
        assert finished.exit == 3
        assert finished.json["error"]["code"] == "svc_file_unreadable"
        assert "Permission denied" in finished.json["error"]["message"]
        assert ".git" not in finished.stdout
    inside = _svc(installation, "upload", "tree/closed/inside.md", "-b", "closed", "--json")
    assert (inside.exit, inside.json["error"]["message"]) == (3, "tree/closed/inside.md: Permission denied.")


def test_a_name_that_was_given_in_both_spellings_is_not_left_out_in_silence(
    installation: Installation, tree: Path
) -> None:
    names = [unicodedata.normalize(form, "tree/caf\u00e9.md") for form in ("NFC", "NFD")]
    finished = installation.svc("upload", *names, "-b", "both", "--json")
    assert (finished.exit, finished.json["counts"]["created"], finished.json["counts"]["failed"]) == (3, 1, 1)
    assert finished.json["error"]["code"] == "svc_title_conflict"


@pytest.mark.parametrize("verb", ["upload", "sync"])
def test_an_archived_bucket_is_named_although_nothing_has_changed(installation: Installation, verb: str) -> None:
    _write(installation.root / "docs" / "a.md", "Words.")
    assert installation.svc(verb, "docs", "-b", "attic").exit == 0
    assert installation.svc("bucket", "archive", "attic").exit == 0
    finished = installation.svc(verb, "docs", "-b", "attic", "--json")
    assert (finished.exit, finished.json["error"]["code"]) == (5, "bucket_not_found")
    assert "archived" in finished.json["error"]["message"]
    assert "svc bucket archive --restore attic" in finished.json["error"]["hint"]
