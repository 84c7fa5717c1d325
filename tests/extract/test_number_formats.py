"""Numbers are shown as their format code shows them, dates and times as ISO writes them."""

import pytest

from svc_daemon.extract.formats.open_xml.number_codes import BUILT_IN
from svc_daemon.extract.formats.open_xml.number_formats import compile_format, text_format

ACCOUNTING = r'_-* #,##0.00\ "€"_-;\-* #,##0.00\ "€"_-;_-* "-"??\ "€"_-;_-@_-'


@pytest.mark.parametrize(
    ("code", "number", "shown"),
    (
        *(("General", 0.1 + 0.2, "0.3"), ("General", 1e20, "1E+20"), ('General "pcs"', 4, "4 pcs"), ("@", 12, "12")),
        *(("0.0%", 0.075, "7.5%"), ("0 %", 0.5, "50 %"), ("0.00%", -0.01, "-1.00%"), ("+0.0%;-0.0%", 0.031, "+3.1%")),
        ("00000", 42, "00042"),
        ("0000000000000", 4006381333931, "4006381333931"),
        ("000-00-0000", 123456789, "123-45-6789"),
        *(("(000) 000-0000", 5551234567, "(555) 123-4567"), ('"Q"0', 3, "Q3"), ('0" kg"', 7, "7 kg")),
        *(("#,##0.00", 1234567.891, "1,234,567.89"), ("0.00", 2.675, "2.68"), ("0", -0.2, "0"), ("0.##", 1.5, "1.5")),
        *(("#", 0, ""), ("#.##", 0.5, ".5"), ("0.##", 2, "2"), (r"0\.000\.000", 1234567, "1.234.567")),
        ('"$"#,##0.00', 1234.5, "$1,234.50"),
        ("[$€-407] #,##0.00", 1234.5, "€ 1,234.50"),
        (ACCOUNTING, 12.5, "12.50 €"),
        *((ACCOUNTING, -12.5, "-12.50 €"), (ACCOUNTING, 0, "- €"), ("$#,##0_);($#,##0)", -5000, "($5,000)")),
        *(("#,##0,", 12345678, "12,346"), ('0.0,,"M"', 12345678, "12.3M"), ('[>=1000]0.0,"K";0', 2500, "2.5K")),
        ('[Red][<0]-0.0;[>100]"big "0;0', 150, "big 150"),
        ('0;-0;"zero"', 0, "zero"),
        ("0.00;(0.00)", -3.456, "(3.46)"),
        *(("# ?/?", 1.25, "1 1/4"), ("# ??/??", 0.333, "1/3"), ("# ?/8", 0.375, "3/8"), ("?/?", 1.25, "5/4")),
        *(("0.00E+00", 12345.678, "1.23E+04"), ("##0.0E+0", 12345.678, "12.3E+3"), (";;;", 5, "")),
    ),
)
def test_number_is_shown_in_its_format(code: str, number: float, shown: str) -> None:
    assert compile_format(code)(number) == shown


@pytest.mark.parametrize(
    ("code", "number", "shown"),
    (
        *(("mm/dd/yyyy", 46096, "2026-03-15"), ("d mmm yyyy hh:mm", 46096.3958333333, "2026-03-15 09:30")),
        (r"[$-409]mmmm\ d\,\ yyyy;@", 46096, "2026-03-15"),
        ('yyyy"年"m"月"d"日"', 46096, "2026-03-15"),
        ("mmm-yy", 46096, "2026-03-15"),
        *(("h:mm AM/PM", 0.9375, "22:30"), ("hh:mm", 46096.3958333333, "09:30"), ("h:mm:ss", 0.5, "12:00:00")),
        ("mm:ss", 0.0022569444, "00:03:15"),
        ("[h]:mm", 1.5, "36:00"),
        ("[h]:mm:ss", 0.0627, "1:30:17"),
        ("[mm]:ss", 0.5, "720:00"),
        *(("h:mm:ss.000", 0.5000001, "12:00:00.009"), ("d.m.yyyy", 59, "1900-02-28"), ("d.m.yyyy", -1, "-1")),
    ),
)
def test_date_or_time_is_shown_as_iso_writes_it(code: str, number: float, shown: str) -> None:
    assert compile_format(code)(number) == shown


def test_days_are_counted_from_1904_where_the_file_says_so() -> None:
    assert compile_format("yyyy-mm-dd", is_1904=True)(44634) == "2026-03-15"


def test_text_has_the_words_of_its_section_and_a_format_may_take_it_away() -> None:
    shows = [text_format(code) for code in ('0;0;0;"Note: "@', '"Note: "@', ";;;", "0.00", "@")]
    assert [show and show("x") for show in shows] == ["Note: x", "Note: x", "", None, None]


def test_no_code_and_no_number_is_too_odd() -> None:
    odd = (
        '"',
        "[",
        "\\",
        "E+",
        "0E0",
        "0.0.0",
        "[>]0",
        "[>1.2.3]0",
        ";;;;;;",
        "%",
        "/",
        "?/",
        "#/0",
        "yy0",
        "",
        "[$",
        "_",
        "*",
    )
    for code in (*odd, *BUILT_IN.values()):
        for number in (0.0, 1.0, -1.5, 1e-300, 1e300, 2_958_465.9, float("inf"), float("nan")):
            assert isinstance(compile_format(code)(number), str), (code, number)
