"""What becomes of a file name, and which ones are refused."""

import pytest

from svc_daemon.core.file_names import clean_file_name
from svc_daemon.errors import ServiceError
from svc_daemon.wire.codes import ErrorCode

KEPT = [
    ("report.txt", "report.txt"),
    ("a/b.txt", "b.txt"),
    ("/etc/hosts", "hosts"),
    ("C:\\notes\\plan.md", "plan.md"),
    ("dir/sub\\leaf.csv", "leaf.csv"),
    (" padded.txt ", "padded.txt"),
    ("Über uns.pdf", "Über uns.pdf"),
    ("Cafe\u0301.md", "Caf\u00e9.md"),
    ("..hidden", "..hidden"),
    ("a..b", "a..b"),
    ("...", "..."),
    ("日本語.txt", "日本語.txt"),
    ("x" * 255, "x" * 255),
    ("👩\u200d💻.md", "👩\u200d💻.md"),
    ("❤\ufe0f\u200d🔥.md", "❤\ufe0f\u200d🔥.md"),
    ("\u0645\u06cc\u200c\u062e.txt", "\u0645\u06cc\u200c\u062e.txt"),
    ("क\u094d\u200d .md", "क\u094d\u200d .md"),
]

REFUSED = {
    "empty": "",
    "only spaces": "   ",
    "a folder": "notes/",
    "dot": ".",
    "dot in a folder": "a/.",
    "parent": "..",
    "parent first": "../../etc/passwd",
    "parent within": "a/../b.txt",
    "parent with backslashes": "..\\..\\boot.ini",
    "parent with spaces": "a/ .. /b",
    "NUL": "a\0.txt",
    "line feed": "a\nb.txt",
    "escape": "a\x1b[31m.txt",
    "delete": "a\x7f",
    "right-to-left override": "a\u202egpj.exe",
    "isolate": "a\u2066b",
    "zero-width space": "a\u200bb",
    "zero-width joiner first": "\u200da.md",
    "zero-width joiner last": "a.md\u200d ",
    "zero-width non-joiner at the end of a folder": "a\u200c/b.md",
    "tag characters": "🏴\U000e0067\U000e007f.md",
    "byte order mark": "\ufeffa",
    "soft hyphen": "a\u00adb",
    "line separator": "a\u2028b",
    "half a surrogate pair": "a\ud800",
    "256 bytes": "x" * 256,
    "256 bytes and more, once composed": "\u0958" * 85,
    "256 bytes of two-byte characters": "ü" * 128,
    "control in the folder part": "a\tb/c.txt",
}


@pytest.mark.parametrize(("sent", "kept"), KEPT)
def test_a_name_keeps_its_last_component_in_one_spelling(sent: str, kept: str) -> None:
    assert clean_file_name(sent) == kept


@pytest.mark.parametrize("sent", REFUSED.values(), ids=REFUSED.keys())
def test_a_name_that_misleads_is_refused(sent: str) -> None:
    with pytest.raises(ServiceError) as caught:
        clean_file_name(sent, "items.3.filename")
    assert caught.value.code is ErrorCode.INVALID_REQUEST
    assert [error["path"] for error in caught.value.details["errors"]] == ["items.3.filename"]


def test_the_refusal_is_one_printable_line() -> None:
    with pytest.raises(ServiceError) as caught:
        clean_file_name("a\n\x1b[31m\u202e.txt")
    assert caught.value.message.isprintable()
