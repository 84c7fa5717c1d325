"""Tests the fields of a source as clients send them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_daemon.core.uploads import source_fields as fields
from svc_daemon.core.uploads.source_fields import (
    check_metadata,
    check_tags,
    clean_file_name,
    split_tags,
)
from svc_daemon.settings.limits import Limits
from tests.core.refusals import field_of, refusal

LIMITS = Limits()


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        *(("", []), (" , ,", []), ("a", ["a"]), ("a,b", ["a", "b"]), (" a , b c ,", ["a", "b c"])),
        *(("a,a", ["a", "a"]), ("Ü,ß", ["Ü", "ß"])),
    ],
)
def test_tags_in_a_form_are_split_at_commas_and_trimmed(text: str, tags: list[str]) -> None:
    assert split_tags(text) == tags


@pytest.mark.parametrize("text", ['["a", "b"]', ' ["a"]\n', "[]", "[ ]"])
def test_tags_in_a_form_are_refused_as_json_since_its_quotes_would_be_in_them(text: str) -> None:
    assert field_of(refusal(split_tags, text)) == ("invalid_request", "tags")


def test_tag_in_a_form_may_have_brackets() -> None:
    assert split_tags('[draft], [1], "x"') == ["[draft]", "[1]", '"x"']


@given(st.text(alphabet=st.characters(exclude_characters="[")))
def test_tags_in_a_form_are_never_blank(text: str) -> None:
    assert all(tag and tag == tag.strip() for tag in split_tags(text))


def test_tags_keep_order_and_case_without_duplicates() -> None:
    assert check_tags(["b", "a", "b", "A", "語" * 64], LIMITS) == ("b", "a", "A", "語" * 64)


@pytest.mark.rule("limit.tags")
def test_twenty_different_tags_are_allowed_and_one_more_is_refused() -> None:
    twenty = [f"tag {number}" for number in range(20)]
    assert check_tags([*twenty, *twenty], LIMITS) == tuple(twenty)
    refused = refusal(check_tags, [*twenty, "more"], LIMITS)
    assert (refused.code, refused.details) == ("too_many_tags", {"max_tags": 20, "tags": 21})


@pytest.mark.parametrize("tag", ["", "x" * 65, "a\nb", "a\x00", "\x7f", "a\u200bb", "\u202e", "\ud800"])
def test_a_tag_that_is_empty_long_or_invisible_is_refused(tag: str) -> None:
    assert refusal(check_tags, ["fine", tag], LIMITS).code == "invalid_request"


@pytest.mark.rule("limit.metadata")
@pytest.mark.parametrize("character", ["x", "ü", "語"])
def test_metadata_is_measured_in_bytes_of_utf_8(character: str) -> None:
    width = len(character.encode())
    fitting = {"k": character * ((8192 - len('{"k":""}')) // width)}
    assert check_metadata(fitting, LIMITS) == fitting
    refused = refusal(check_metadata, {"k": fitting["k"] + character}, LIMITS)
    assert (refused.code, refused.details["max_bytes"]) == ("metadata_too_large", 8192)
    assert refused.details["size_bytes"] > 8192


def test_metadata_that_is_not_an_object_is_refused() -> None:
    wrong: list[object] = [None, [], "text", 1, True, [{}]]
    for metadata in wrong:
        assert field_of(refusal(check_metadata, metadata, LIMITS)) == ("invalid_request", "metadata"), metadata


def test_a_title_is_kept_unchanged_or_refused() -> None:
    for title in ["a", "docs/a b.md", "語", "x" * 1024, " padded "]:
        assert fields.check_title(title, LIMITS) == title
    for title in ["", " ", "\u3000", "x" * 1025, "a\nb", "a\x00b", "\x7f"]:
        assert field_of(refusal(fields.check_title, title, LIMITS)) == ("invalid_request", "title"), ascii(title)


def test_a_checksum_is_64_hex_digits_kept_in_lower_case() -> None:
    assert fields.check_sha256(" " + "AB" * 32 + "\n") == "ab" * 32
    for text in ["", "ab" * 31, "ab" * 33, "g" * 64, "0x" + "a" * 62, "ab " * 21, "\u0661" * 64]:
        assert refusal(fields.check_sha256, text).code == "invalid_request", text


#: File names as sent, and as stored.
KEPT = [
    *(("a/b.txt", "b.txt"), ("/etc/hosts", "hosts"), ("C:\\notes\\plan.md", "plan.md"), (" padded.txt ", "padded.txt")),
    *(("dir/sub\\leaf.csv", "leaf.csv"), ("Cafe\u0301.md", "Caf\u00e9.md")),
]
UNCHANGED = [
    *("report.txt", "Über uns.pdf", "..hidden", "a..b", "...", "日本語.txt", "x" * 255, "👩\u200d💻.md"),
    *("❤\ufe0f\u200d🔥.md", "\u0645\u06cc\u200c\u062e.txt", "क\u094d\u200d .md"),
]
REFUSED = [
    # Empty names, folders, and paths that leave a folder.
    *("", "   ", "notes/", ".", "a/.", "..", "../../etc/passwd", "a/../b.txt", "..\\..\\boot.ini", "a/ .. /b"),
    # Control characters, also in the folder part: NUL, line feed, escape, delete, tab.
    *("a\0.txt", "a\nb.txt", "a\x1b[31m.txt", "a\x7f", "a\tb/c.txt"),
    # Invisible characters: overrides, isolates, zero-width characters, tags, marks, separators.
    *("a\u202egpj.exe", "a\u2066b", "a\u200bb", "\u200da.md", "a.md\u200d ", "a\u200c/b.md"),
    *("🏴\U000e0067\U000e007f.md", "\ufeffa", "a\u00adb", "a\u2028b", "a\ud800"),
    # 256 bytes or more: of one-byte characters, after composition, and of two-byte characters.
    *("x" * 256, "\u0958" * 85, "ü" * 128),
]


@pytest.mark.parametrize(("sent", "kept"), KEPT + [(name, name) for name in UNCHANGED])
def test_a_file_name_keeps_its_last_component_in_normal_form(sent: str, kept: str) -> None:
    assert clean_file_name(sent) == kept


@pytest.mark.parametrize("sent", REFUSED)
def test_a_misleading_file_name_is_refused_in_one_printable_line(sent: str) -> None:
    refused = refusal(clean_file_name, sent)
    assert field_of(refused) == ("invalid_request", "filename")
    assert refused.message.isprintable()
