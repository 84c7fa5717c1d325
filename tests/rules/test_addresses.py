"""What is committed works on any machine and with any registry."""

import pytest

from tests.rules.addresses import committed_files, forbidden
from tests.rules.modules import ROOT

SLASH = "/"


def test_no_committed_file_names_a_registry_or_a_machine() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    told = {
        str(path.relative_to(ROOT)): found
        for path in committed_files()
        if (found := list(forbidden(path.read_text(encoding="utf-8", errors="replace"))))
    }
    assert told == {}


@pytest.mark.parametrize(
    "text",
    [
        "https:" + "//py" + "pi.org/simple",
        "files.python" + "hosted.org",
        "--index" + "-url=file:x",
        SLASH + "work/main",
        SLASH + "home/jo/svc",
        SLASH + "tmp/svc/venv",
        "`pip " + "install 'svc[mcp]'`",
        "pip " + "install -U svc\n",
    ],
)
def test_a_registry_or_a_machine_path_is_told(text: str) -> None:
    assert len(list(forbidden(f"see {text} there"))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "docs/work/notes.md",
        "../home/x/",
        "/v1/buckets/handbook/files",
        "a tmp/x/ folder",
        "pip install 'svc-knowledge[mcp]'",
    ],
)
def test_a_path_in_the_repository_is_fine(text: str) -> None:
    assert list(forbidden(text)) == []
