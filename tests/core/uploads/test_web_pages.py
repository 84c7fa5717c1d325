"""Tests which content is a web page, and the title and file name of a page."""

import pytest

from svc_daemon.core.uploads.web_pages import is_web_page, page_file_name, page_title

HTML = b"<!doctype html><html><body><p>Hello</p></body></html>"
FRAGMENT = b"<div><p>Hello</p></div>"
TEXT = b"Hello there. Nothing but words.\n"
PDF = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n"
JSON = b'{"answer": 42}'


#: Content, declared type and name.
PAGES = [
    *((HTML, "text/html", ""), (HTML, "text/html; charset=utf-8", "index.html"), (HTML, "TEXT/HTML", "index.php")),
    *((HTML, "application/xhtml+xml", ""), (HTML, "", ""), (HTML, "text/plain", "")),
    *((HTML, "application/octet-stream", "page"), (b"\xef\xbb\xbf" + HTML, "text/html", "")),
    *((FRAGMENT, "text/html", ""), (FRAGMENT, "text/html", "index.php")),
    *((TEXT, "text/html", ""), (TEXT, "text/plain", "page.html")),
]
FILES = [
    *((HTML, "text/plain", "page.php"), (FRAGMENT, "text/plain", "")),
    *((TEXT, "text/plain", ""), (TEXT, "text/markdown", "readme.md"), (TEXT, "", "")),
    *((PDF, "text/html", "report.html"), (PDF, "application/pdf", "report.pdf"), (PDF, "", "")),
    *((JSON, "application/json", ""), (b"\x89PNG\r\n\x1a\n\x00\x00", "text/html", "")),
    (b'<?xml version="1.0"?><rss></rss>', "application/rss+xml", ""),
]


@pytest.mark.parametrize("case", PAGES + FILES)
def test_content_declared_type_and_name_decide_what_is_a_page(case: tuple[bytes, str, str]) -> None:
    assert is_web_page(*case) is (case in PAGES)


@pytest.mark.parametrize(
    ("head", "title"),
    [
        *((b"<title>Quays</title>", "Quays"), (b"<TITLE lang='en'>\n Quays &amp;\n stones </TITLE>", "Quays & stones")),
        *((b"<html><head><title></title><body>", None), (b"<title>never ends", None), (b"<p>none</p>", None)),
        *((b"<title>Zo\xc3\xab</title>", "Zoë"), (b"<title>Caf\xe9s</title>", "Cafés")),
        *((b"<title>a\x01b</title>", "ab"), (b"<title>" + b"x" * 50 + b"</title>", "x" * 20)),
        (b"<title>&#8203;</title>", None),
        ("<title>Zażółć</title><meta charset=iso-8859-2>".encode("iso-8859-2"), "Zażółć"),
        ("<meta charset=utf-8><title>Zażółć</title>".encode("utf-16"), "Zażółć"),
        ("<title>Zażółć</title><p>ż".encode()[:-1], "Zażółć"),
        *((b"<svg><title>Icon</title></svg>", None), (b"<title>Quays</title><svg><title>Icon</title>", "Quays")),
    ],
)
def test_a_pages_title_is_extracted(head: bytes, title: str | None) -> None:
    assert page_title(head, max_characters=20) == title


def test_the_encoding_of_a_title_is_the_one_that_the_host_declares() -> None:
    head = "<title>Zażółć</title>".encode("iso-8859-2")
    assert page_title(head, 20, "text/html; charset=iso-8859-2") == "Zażółć"
    assert page_title("<title>Zażółć</title>".encode(), 20, "text/html; charset=iso-8859-1") == "Zażółć"


def test_the_file_name_of_a_page_ends_in_html() -> None:
    for name in ["a.html", "A.HTM", "a.xhtml"]:
        assert page_file_name(name) == name
    for name, kept in [("index.php", "index.php"), ("example.com", "example.com"), ("x" * 255, "x" * 240)]:
        assert page_file_name(name) == f"{kept}.html"
