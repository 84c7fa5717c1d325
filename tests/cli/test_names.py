"""The name of a file is the same on disk, in the service and back, by every door and in every locale."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.installations import Installation
from tests.cli.consoles import RunSvc

NAMES = [
    *('say "hi".md', "%22.md", "100%.md", "%0A.md", "back\\slash.md", 'back\\"quote.md', "a;b=c.md", "C:\\x.md"),
    *("ü.md", "日本.md", "\\%22.md", "é\\\\.md", "c%20d.md"),
]


@pytest.mark.parametrize("mode", ["one", "session", "batch"])
def test_name_is_the_same_whatever_way_the_file_is_sent(here: RunSvc, mode: str) -> None:
    for number, name in enumerate(NAMES):
        Path(name).write_text(f"words {number} of {mode}")
        assert here("upload", name, "-b", f"names-{mode}", "--mode", mode, "--wait", "accepted").exit == 0, name
    listed = here("source", "ls", "-b", f"names-{mode}", "--json").json["sources"]
    assert sorted(each["title"] for each in listed) == sorted(NAMES)
    # A backslash ends a folder's name, by every door.
    assert sorted(each["filename"] for each in listed) == sorted(name.rpartition("\\")[2] for name in NAMES)


@pytest.mark.parametrize("locale", ["C", "POSIX"])
def test_names_are_utf8_in_a_locale_of_another_encoding(shared_installation: Installation, locale: str) -> None:
    folder = shared_installation.root / locale
    folder.mkdir()
    for name in ("ü.md", "日本.md"):
        folder.joinpath(name).write_text(f"words of {name} in {locale}")
    old = {"LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    words = ("sync", str(folder), "-b", f"locale-{locale.lower()}", "--json")
    command = [sys.executable, "-m", "svc_cli", *words]
    sent = subprocess.run(command, env={**shared_installation.environ, **old}, capture_output=True, check=False)
    report = json.loads(sent.stdout)
    assert (sent.returncode, report["counts"]["created"]) == (0, 2)
    assert sorted(item["path"] for item in report["items"]) == sorted(["ü.md", "日本.md"])
    again = shared_installation.svc(*words)
    assert again.json["counts"]["unchanged"] == 2
