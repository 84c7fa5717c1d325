"""The command line without what only Unix has works against a server, and the daemon says what it needs."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.installations import Finished, Installation
from tests.acceptance.watches import Watch
from tests.cli.terminals import write

#: Runs a program without what only Unix has.
WITHOUT_UNIX = [sys.executable, str(Path(__file__).with_name("without_unix.py"))]
#: Imports every module of the command line.
_IMPORTED = """
import pkgutil, importlib, svc_cli
from tests.cli.without_unix import become_windows
become_windows()
for each in pkgutil.walk_packages(svc_cli.__path__, "svc_cli."):
    each.name.endswith("__main__") or importlib.import_module(each.name)
"""

RunHere = Callable[..., Finished]


@pytest.fixture
def windows(shared_installation: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunHere:
    """Return a function that runs `svc` without Unix in a new folder, against a daemon that runs with all of it."""
    write(tmp_path, "key", data=shared_installation.key.encode())
    environ = {name: str(tmp_path / name) for name in ("SVC_DATA_DIR", "SVC_CONFIG_DIR", "SVC_STATE_DIR")}
    environ |= {"SVC_BASE_URL": shared_installation.base_url, "SVC_API_KEY_FILE": str(tmp_path / "key")}
    for name, value in environ.items():
        monkeypatch.setitem(shared_installation.environ, name, value)

    def run(command: str, code: int = 0) -> Finished:
        words = (*WITHOUT_UNIX, "svc_cli.main", command)
        ended = shared_installation.run(*words, cwd=tmp_path)
        assert ended.exit == code, (command, ended.stdout, ended.stderr)
        return ended

    return run


def actions(ended: Finished) -> dict[str, str]:
    """Return what became of each file, except those that are skipped."""
    return {each["path"]: each["action"] for each in ended.json["items"] if each["action"] != "skipped"}


def test_every_module_of_the_command_line_is_imported(shared_installation: Installation) -> None:
    ended = shared_installation.run(sys.executable, "-c", _IMPORTED, cwd=Path(__file__).parents[2])
    assert (ended.exit, ended.stderr) == (0, "")


def test_commands_without_folders_need_nothing_that_windows_lacks(windows: RunHere, tmp_path: Path) -> None:
    write(tmp_path, "lines.txt", data=b"Words about piers.\r\nAnd more.\r\n")
    write(tmp_path, "svc.toml", data=b'bucket = "windows"\n')
    commands = (
        "upload lines.txt",
        "search piers -b windows",
        "ask what words are about piers -b windows",
        "status -b windows",
        "source ls",
        "source set lines.txt -b windows --tag t",
        "source get lines.txt",
        "bucket ls",
        "events --limit 3",
        "key ls",
        "agent ls",
        "config list",
        "config set search.k 5",
        "doctor",
        "watch ls",
        "auth status",
    )
    # In one process, whose start takes longer than a command.
    windows("\n".join(commands))


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder with files, ignored files, and links to what is outside of it."""
    write(tmp_path, "docs/a.md", "docs/sub/b.md", "docs/sub/draft.md", "docs/c.md")
    for name in ("a", "sub/b", "c"):
        write(tmp_path, f"docs/{name}.md", data=f"Words about quays, in {name}.".encode())
    write(tmp_path, "docs/sub/.gitignore", data=b"draft.md\n")
    write(tmp_path, "private/secret.md", data=b"A secret.")
    (tmp_path / "docs" / "out").symlink_to(tmp_path / "private")
    (tmp_path / "docs" / "out.md").symlink_to(tmp_path / "private" / "secret.md")
    return tmp_path / "docs"


def test_folders_are_sent_and_links_out_of_them_are_not(windows: RunHere, docs: Path) -> None:
    names = ("docs/a.md", "docs/c.md", "docs/sub/b.md")
    assert actions(windows("upload docs -b folders --json")) == dict.fromkeys(names, "created")
    assert actions(windows(f"upload {docs} -b folders --json")) == dict.fromkeys(names, "unchanged")
    assert actions(windows("upload docs/**/[a-c].md -b folders --json")) == dict.fromkeys(names, "unchanged")
    assert "link" in windows("upload docs/ou*/*.md -b folders", code=3).stdout
    for named in ("out", "out.md"):
        write(docs, "svc.toml")
        assert "leads out of the repository" in windows(f"upload docs/{named} -b folders", code=2).stderr
    assert {each["title"] for each in windows("source ls -b folders --json").json["sources"]} == set(names)


def test_a_folder_is_kept_in_step_with_its_bucket(windows: RunHere, docs: Path) -> None:
    sync = "sync docs -b in-step --name docs --prune delete --json"
    assert actions(windows(sync)) == dict.fromkeys(("a.md", "c.md", "sub/b.md"), "created")
    assert windows(sync).json["counts"]["unchanged"] == 3
    (docs / "a.md").unlink()
    (docs / "sub" / "b.md").rename(docs / "sub" / "moved.md")
    write(docs, "c.md", data=b"Words about cranes.")
    changes = {"a.md": "deleted", "sub/moved.md": "moved", "c.md": "updated"}
    assert actions(windows("diff docs -b in-step --name docs --prune delete --json", code=10)) == changes
    assert actions(windows(sync)) == changes
    windows("diff docs -b in-step --name docs --prune delete")
    left_out = {each["path"]: each["reason_code"] for each in windows("ignore list docs --json").json["items"]}
    links = {"out.md": "link", "out/": "link"}
    assert left_out == links | {"sub/.gitignore": "dotfile", "sub/draft.md": "ignored"}


def test_files_are_written_and_replaced_but_not_under_names_that_mean_something_else(
    windows: RunHere, docs: Path, tmp_path: Path
) -> None:
    windows("upload docs -b written")
    write(tmp_path, "copy.md", data=b"old")
    for output in ("copy.md", "docs/new.md"):
        windows(f"source get docs/c.md -b written -o {output}")
        assert (tmp_path / output).read_bytes() == b"Words about quays, in c."
    windows("bucket export written written.tar")
    assert windows("bucket import written.tar --bucket read-in --json").json["counts"]["created"] == 3
    refused = windows("source get docs/c.md -b written -o docs/NUL.md", code=2)
    assert refused.stderr.startswith("error: 'NUL.md' can't be the name of a file on Windows.\nhint: ")
    write(tmp_path, "kept.md", data=b"kept")
    (docs / "away.md").symlink_to(tmp_path / "kept.md")
    windows("source get docs/c.md -b written -o docs/away.md", code=2)
    assert (tmp_path / "kept.md").read_bytes() == b"kept"
    assert not list(tmp_path.rglob("*.part"))


def test_a_watcher_takes_what_is_saved(
    windows: RunHere, docs: Path, shared_installation: Installation, tmp_path: Path
) -> None:
    windows("watch add docs -b watched --name docs")
    program = [*WITHOUT_UNIX, "svc_cli.main", "watch run --ndjson"]
    watch = Watch(shared_installation, program=program)
    watch.wait_for_state("watching")
    write(docs, "sub/saved.md", data=b"Words about moles.")
    watch.wait_for_item("created", "sub/saved.md")
    windows("watch flush docs --timeout 1m")
    (state,) = windows("watch status --json").json["mappings"]
    assert (state["running"], state["error"]) == (True, None)
    assert watch.end() == 0


def test_the_daemon_says_in_one_line_that_it_needs_wsl(shared_installation: Installation) -> None:
    alone = shared_installation.run(*WITHOUT_UNIX, "svc_daemon.command.main", "serve")
    assert (alone.exit, alone.stdout, alone.stderr.count("\n")) == (1, "", 1)
    assert "WSL" in alone.stderr
    by_svc = shared_installation.run(*WITHOUT_UNIX, "svc_cli.main", "status")
    assert by_svc.exit == 12
    assert by_svc.stderr.startswith("error: The local daemon runs on Linux and macOS, and on Windows in WSL.\n")
