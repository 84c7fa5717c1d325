"""The fields that people describe a source with: what is kept, and what is refused with which code."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_daemon.core.uploads.source_fields import (
    check_answer,
    check_metadata,
    check_question,
    check_sha256,
    check_tags,
    check_title,
    clean_file_name,
    question_text,
    split_tags,
)
from svc_daemon.errors import ServiceError
from svc_daemon.settings import Limits
from svc_daemon.wire.codes import ErrorCode

LIMITS = Limits()


def test_tags_of_a_form_are_split_at_commas_and_trimmed() -> None:
    for text, tags in [
        ("", []),
        (" , ,", []),
        ("a", ["a"]),
        ("a,b", ["a", "b"]),
        (" a , b c ,", ["a", "b c"]),
        ("a,a", ["a", "a"]),
        ("Ü,ß", ["Ü", "ß"]),
    ]:
        assert split_tags(text) == tags


@given(st.text())
def test_whatever_a_form_says_no_tag_is_blank(text: str) -> None:
    assert all(tag and tag == tag.strip() for tag in split_tags(text))


def test_tags_are_kept_once_in_their_order_and_case() -> None:
    assert check_tags(["b", "a", "b", "A"], LIMITS) == ("b", "a", "A")


def test_twenty_different_tags_pass_and_one_more_does_not() -> None:
    twenty = [f"tag {number}" for number in range(20)]
    assert check_tags([*twenty, *twenty], LIMITS) == tuple(twenty)
    with pytest.raises(ServiceError) as refused:
        check_tags([*twenty, "more"], LIMITS)
    assert refused.value.code == "too_many_tags"
    assert refused.value.details == {"max_tags": 20, "tags": 21}


def test_a_tag_that_is_empty_long_or_invisible_is_refused() -> None:
    for tag in ["", "x" * 65, "a\nb", "a\x00", "\x7f", "a\u200bb", "\u202e", "\ud800"]:
        with pytest.raises(ServiceError) as refused:
            check_tags(["fine", tag], LIMITS)
        assert refused.value.code == "invalid_request"


def test_a_tag_of_64_characters_of_any_script_passes() -> None:
    assert check_tags(["語" * 64], LIMITS) == ("語" * 64,)


def _object_of(size_bytes: int, character: str = "x") -> dict[str, str]:
    """An object whose JSON in UTF-8 has this size."""
    width = len(character.encode())
    return {"k": character * ((size_bytes - len('{"k":""}')) // width)}


def test_metadata_is_measured_in_bytes_of_utf_8() -> None:
    for character in ["x", "ü", "語"]:
        width = len(character.encode())
        fitting = _object_of(8192, character)
        assert check_metadata(fitting, LIMITS) == fitting
        with pytest.raises(ServiceError) as refused:
            check_metadata(_object_of(8192 + width, character), LIMITS)
        assert refused.value.code == "metadata_too_large"
        assert refused.value.details["max_bytes"] == 8192
        assert refused.value.details["size_bytes"] > 8192


@pytest.mark.parametrize("metadata", [None, [], "text", 1, True, [{}]])
def test_metadata_that_is_no_object_is_refused(metadata: Any) -> None:
    with pytest.raises(ServiceError) as refused:
        check_metadata(metadata, LIMITS)
    assert refused.value.code == "invalid_request"
    assert refused.value.details["errors"][0]["path"] == "metadata"


def test_a_title_stays_as_it_is() -> None:
    for title in ["a", "docs/a b.md", "語", "x" * 1024, " padded "]:
        assert check_title(title, LIMITS) == title


def test_a_title_that_is_blank_long_or_has_controls_is_refused() -> None:
    for title in ["", " ", "\u3000", "x" * 1025, "a\nb", "a\x00b", "\x7f"]:
        with pytest.raises(ServiceError) as refused:
            check_title(title, LIMITS)
        assert refused.value.code == "invalid_request"
        assert refused.value.details["errors"][0]["path"] == "title"


def test_a_checksum_is_64_hex_digits_of_any_case_and_kept_in_lower_case() -> None:
    assert check_sha256(" " + "AB" * 32 + "\n") == "ab" * 32


def test_anything_else_is_no_checksum() -> None:
    for text in ["", "ab" * 31, "ab" * 33, "g" * 64, "0x" + "a" * 62, "ab " * 21, "\u0661" * 64]:
        with pytest.raises(ServiceError) as refused:
            check_sha256(text)
        assert refused.value.code == "invalid_request"


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


def test_a_name_keeps_its_last_component_in_one_spelling() -> None:
    for sent, kept in KEPT:
        assert clean_file_name(sent) == kept


def test_a_name_that_misleads_is_refused() -> None:
    for sent in REFUSED.values():
        with pytest.raises(ServiceError) as caught:
            clean_file_name(sent, "items.3.filename")
        assert caught.value.code is ErrorCode.INVALID_REQUEST
        assert [error["path"] for error in caught.value.details["errors"]] == ["items.3.filename"]


def test_the_refusal_is_one_printable_line() -> None:
    with pytest.raises(ServiceError) as caught:
        clean_file_name("a\n\x1b[31m\u202e.txt")
    assert caught.value.message.isprintable()


def test_a_question_is_one_line() -> None:
    for text, question in [
        ("Why?", "Why?"),
        ("  Why\n\tnot? ", "Why not?"),
        ("Wh\u200by?", "Wh y?"),
        ("¿Por qué?", "¿Por qué?"),
    ]:
        assert check_question(text, Limits()) == question


def test_a_blank_or_endless_question_is_refused_by_name() -> None:
    for text in ["", " \n", "\u200b", "x" * 1025]:
        with pytest.raises(ServiceError) as refused:
            check_question(text, Limits(), "alternate_questions.3")
        assert refused.value.details["errors"][0]["path"] == "alternate_questions.3"


def test_an_answer_without_a_word_is_refused() -> None:
    for text in ["", " ", "?!", "\n"]:
        with pytest.raises(ServiceError, match="answer"):
            check_answer(text)


def test_the_question_heads_its_answer() -> None:
    assert question_text("Why?", "Because.", ["How so?", "What for?"]) == (
        "# Why?\n\n- How so?\n- What for?\n\nBecause.\n"
    )
