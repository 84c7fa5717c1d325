"""`upload` and `sync` treat each odd name and unreadable file of a folder alike, and report each of them."""

import gzip
import os
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.installations import Finished, Installation
from tests.acceptance.sync_folders import WITHOUT_ROOTS_RIGHTS, write
from tests.conftest import MakeInstallation

GOOD = (
    *("plain.md", "A.md", "a.md", "👩\u200d💻.md", "\u0646\u0645\u06cc\u200c\u062e.md", "sub/deep/end.md"),
    *("emoji 😀.md", f"{'x' * 252}.md", " lead.md", "trail.md ", "two  spaces.md", "back\\slash.md", 'q?*<>|".md'),
    *("%41.md", "nbsp\u00a0.md", "ﬁ.md", "un\u0378assigned.md", "\u0958.md"),
)
INVISIBLE = (
    *("zero\u200bwidth.md", "right\u202eto left.md", "line\nbreak.md", "joiner.md\u200d", "soft\u00adhyphen.md"),
)
REFUSED = (*INVISIBLE, "back\\", "climbs\\..\\a.md", " ", "\u0958" * 84 + ".md")
TWICE = ("caf\u00e9.md", "\u00e9/in.md", "empty \u00fc.md", "f\u0131n\u00e9\u200b.md")


@pytest.fixture
def tree(installation: Installation) -> Iterator[Path]:
    """A folder of odd and unreadable files, whose permissions are restored at the end."""
    folder = installation.root / "tree"
    for name in (*GOOD, *REFUSED, *(unicodedata.normalize(form, name) for name in TWICE for form in ("NFC", "NFD"))):
        write(folder, name, "" if name.startswith("empty") else f"Words about {name.encode()!r}.")
    closed = ("closed.md", "closed/inside.md", "listed only/inside.md")
    for name in ("odd\u200bfolder/x.md", ".hidden.md", "ignored.md", FAR, *closed):
        write(folder, name, "Words.")
    write(folder, os.fsdecode(b"latin-\xe9.md"), "Words.")
    write(folder, "empty.md", "")
    write(folder, ".svcignore", "ignored*\n")
    write(folder, "picture.png", b"\x89PNG\0")
    with (folder / "large.md").open("wb") as large:
        large.truncate(26 * 1024 * 1024)
    links = {"link.md": "plain.md", "ignored-link.md": "plain.md", "link": "sub", "dead.md": "nowhere"}
    for name, target in (links | {"behind a door.md": "listed only/inside.md"}).items():
        (folder / name).symlink_to(target)
    os.mkfifo(folder / "pipe.md")
    doors = [(folder / "closed.md", 0), (folder / "closed", 0), (folder / "listed only", 0o444)]
    for path, mode in doors:
        path.chmod(mode)
    yield folder
    for path, _ in doors:
        path.chmod(0o700)


def _svc(installation: Installation, *words: str) -> Finished:
    """Run `svc` without the capabilities with which root reads everything."""
    return installation.run(sys.executable, "-c", WITHOUT_ROOTS_RIGHTS, *words)


def _verdicts(finished: Finished) -> dict[str, tuple[str, str | None, str | None]]:
    """Return the action, the reason for skipping and the error message of each path."""
    items = finished.json["items"]
    verdicts = {
        each["path"].removeprefix("tree/"): (each["action"], each["reason"], (each["error"] or {}).get("message"))
        for each in items
    }
    assert len(verdicts) == len(items), "two items have the same path"
    return verdicts


#: A path that is too long, in nested folders with long names.
FAR = "/".join(["n" * 200] * 6 + ["far.md"])
DENIED = "can't be read: Permission denied."
#: The paths that are not uploaded, by reason; of two Unicode spellings of a name, the second by code points.
LEFT_OUT = {
    "dotfile": (".hidden.md", ".svcignore"),
    "ignored": ("ignored.md", "ignored-link.md"),
    "link": ("link.md", "link/", "dead.md", "behind a door.md"),
    "empty": ("empty.md", "empty ü.md", r"empty \xfc.md"),
    "too large": ("large.md",),
    "not a regular file": ("pipe.md",),
    "type can't be read": ("picture.png",),
    "path is too long": (FAR,),
    "name holds an invisible character": (
        *(*INVISIBLE, "odd\u200bfolder/", "f\u0131n\u00e9\u200b.md", r"f\u0131n\xe9\u200b.md"),
    ),
    "name is blank or a path": ("back\\", "climbs\\..\\a.md", " "),
    "name is too long": (unicodedata.normalize("NFC", "\u0958") * 84 + ".md",),
    "name is not UTF-8": (os.fsdecode(b"latin-\xe9.md"),),
    "another file has the same name in a different Unicode spelling": (r"caf\xe9.md", r"\xe9/in.md"),
    DENIED: ("closed/", "listed only/inside.md"),
    f"the file {DENIED}": ("closed.md",),
}


def test_upload_and_sync_report_the_same_result_for_each_file(installation: Installation, tree: Path) -> None:
    uploaded = _svc(installation, "upload", "tree", "-b", "uploaded", "--json")
    synced = _svc(installation, "sync", "tree", "-b", "synced", "--json")
    assert (uploaded.exit, synced.exit) == (3, 3), uploaded.stderr + synced.stderr
    verdicts = _verdicts(uploaded)
    assert verdicts == _verdicts(synced)
    found = {path: reason or message for path, (action, reason, message) in verdicts.items() if action != "created"}
    assert found == {path: reason for reason, paths in LEFT_OUT.items() for path in paths}
    created = {unicodedata.normalize("NFC", name) for name in (*GOOD, "caf\u00e9.md", "\u00e9/in.md")}
    assert verdicts.keys() - found.keys() == created
    for error in (each["error"] for finished in (uploaded, synced) for each in finished.json["items"] if each["error"]):
        assert set(error) == {"code", "message", "retryable", "details", "hint", "request_id"}


def test_unreadable_paths_and_names_in_two_spellings_are_reported_as_errors(
    installation: Installation, tree: Path
) -> None:
    # A followed link fails if its target can't be read.
    followed = _verdicts(_svc(installation, "sync", "tree", "-b", "followed", "--follow-links", "--json"))
    assert (followed["behind a door.md"], followed["plain.md"][0]) == (("failed", None, DENIED), "created")

    for verb in ("upload", "sync"):
        finished = _svc(installation, verb, "tree/closed", "-b", "closed", "--json")
        assert finished.failure == (3, "svc_file_unreadable")
        assert "Permission denied" in finished.json["error"]["message"]
        assert ".git" not in finished.stdout
    inside = _svc(installation, "upload", "tree/closed/inside.md", "-b", "closed", "--json")
    assert (inside.exit, inside.json["error"]["message"]) == (3, "tree/closed/inside.md: Permission denied.")

    # If a name is given in both Unicode spellings, one file is uploaded and one is reported.
    names = [unicodedata.normalize(form, "tree/caf\u00e9.md") for form in ("NFC", "NFD")]
    both = installation.svc("upload", *names, "-b", "both", "--json")
    assert both.failure == (3, "svc_title_conflict")
    assert (both.json["counts"]["created"], both.json["counts"]["failed"]) == (1, 1)


#: Files that exclude `secret.md` in the eyes of the person who wrote them, and one that nobody can read.
BYTES = {
    "UTF-16": "secret.md\n".encode("utf-16"),
    "UTF-16 without a mark": "secret.md\n".encode("utf-16-be"),
    "Latin-1": "s\xe9cret.md\n".encode("latin-1"),
    "binary": gzip.compress(b"secret.md\n"),
}


def make(path: Path, kind: str) -> None:
    """Put something that can't be read as a file at a path."""
    path.unlink(missing_ok=True)
    if kind == "folder":
        path.mkdir()
    elif kind == "link to nothing":
        path.symlink_to("nowhere")
    elif kind in BYTES:
        path.write_bytes(BYTES[kind])
    else:
        pipe = path.with_name("pipe.md") if kind == "link to a pipe" else path
        os.mkfifo(pipe)
        if pipe != path:
            path.symlink_to(pipe.name)


KINDS = ("pipe", "folder", "link to nothing", "link to a pipe", *BYTES)


@pytest.mark.parametrize(("kind", "name"), [*((kind, ".gitignore") for kind in KINDS), ("pipe", ".svcignore")])
def test_ignore_file_that_is_no_file_stops_its_folder(
    shared_installation: Installation, tmp_path: Path, kind: str, name: str
) -> None:
    for path in (".git/HEAD", "docs/a.md", "docs/sub/secret.md", "docs/sub/deep/b.md"):
        write(tmp_path, path, f"Words of {kind} {name} {path}.")
    make(tmp_path / "docs" / "sub" / name, kind)
    bucket = f"{kind}-{name[1:]}".replace(" ", "-").lower()
    for verb in ("upload", "sync"):
        ended = shared_installation.svc(verb, "docs", "-b", f"{bucket}-{verb}", "--json", cwd=tmp_path)
        assert ended.failure == (3, "svc_file_unreadable"), verb
        assert f"docs/sub/{name}: " in ended.json["error"]["message"]
        sent = [each["path"] for each in ended.json["items"] if each["action"] == "created"]
        assert [path.removeprefix("docs/") for path in sent] == ["a.md"]
        inside = shared_installation.svc(verb, "docs/sub/deep", "-b", f"{bucket}-{verb}", "--json", cwd=tmp_path)
        assert inside.failure == (3, "svc_file_unreadable"), "the rules above a folder apply in it"
    checked = shared_installation.svc("ignore", "check", "docs/sub/secret.md", "--json", cwd=tmp_path)
    assert checked.failure == (3, "svc_file_unreadable")
    listed = shared_installation.svc("ignore", "list", "docs", "--json", cwd=tmp_path)
    assert (listed.exit, [each["path"] for each in listed.json["items"]]) == (3, ["sub/"])


@pytest.mark.parametrize(
    ("kind", "command"),
    [
        *((kind, "sync --all") for kind in KINDS),
        *(("folder", words) for words in ("upload docs -b b", "watch ls", "config trust", "config set wait ready")),
    ],
)
def test_settings_file_that_is_no_file_stops_the_command(
    make_installation: MakeInstallation, kind: str, command: str
) -> None:
    # No command comes so far that it needs the daemon, or starts it.
    installation = make_installation()
    write(installation.root, "svc.toml", 'bucket = "b"\n')
    write(installation.root, "project/docs/a.md", "Words.")
    write(installation.root, "config/config.toml", "")
    is_own = command.startswith("config set")
    make(installation.root / ("config/config.toml" if is_own else "project/svc.toml"), kind)
    ended = installation.svc(*command.split(), "--json", cwd=installation.root / "project")
    assert (ended.failure, "can't be read" in ended.json["error"]["message"]) == ((2, "svc_usage"), True)
