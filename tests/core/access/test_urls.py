"""Tests how URLs are parsed, their canonical form, and the file names that they give."""

from svc_daemon.core.access.urls import MAX_CHARACTERS, file_name, join_url, parse_url
from tests.core.refusals import refusal

CANONICAL = [
    *(("http://example.com", "http://example.com/"), ("HTTPS://EXAMPLE.com:443/A/b", "https://example.com/A/b")),
    ("http://example.com:443/", "http://example.com:443/"),
    ("http://bücher.example/", "http://xn--bcher-kva.example/"),
    ("http://BÜCHER.example/", "http://xn--bcher-kva.example/"),
    ("http://my_files.storage.example/", "http://my_files.storage.example/"),
    *(("http://8.8.8.8/", "http://8.8.8.8/"), ("http://[::1]:8080/x", "http://[::1]:8080/x")),
    ("http://[2001:4860:4860:0:0:0:0:8888]:80/", "http://[2001:4860:4860::8888]/"),
    ("http://localhost:3000", "http://localhost:3000/"),
]
#: Behind `http://example.com`.
CANONICAL_PATHS = [
    *((":80/a b ", "/a%20b"), ("/a?x=1&y=%zz#part", "/a?x=1&y=%25zz"), ("/#!/page", "/"), ("/a/./b/../c", "/a/c")),
    *(("/../../a", "/a"), ("/a/..", "/"), ("/a/b/.", "/a/b/"), ("//a//b", "//a//b"), ("?x=../y", "/?x=../y")),
    *(("/ä/日本.pdf?q=ü", "/%C3%A4/%E6%97%A5%E6%9C%AC.pdf?q=%C3%BC"), ("/a\\b|c", "/a%5Cb%7Cc")),
]


def test_a_url_has_one_canonical_form() -> None:
    paths = [(f" http://example.com{path}", f"http://example.com{canonical}") for path, canonical in CANONICAL_PATHS]
    for text, canonical in CANONICAL + paths:
        assert [str(parse_url(each)) for each in (text, canonical)] == [canonical] * 2, text


BLOCKED = {
    "url": [
        *("", "example.com/a.pdf", "//example.com/a.pdf", "http:example.com", "http:/example.com"),
        *("javascript:alert(1)", "data:text/plain,hello", "http://example.com/\r\nHost: other"),
        *("http://exa\tmple.com/", "http://example.com/\x00", "http://example.com/\u200b"),
        *("http://example.com/\ud800", "http://example.com/" + "a" * MAX_CHARACTERS, "http://exa\u00admple.com/"),
    ],
    "scheme": ["file:///etc/passwd", "ftp://example.com/", "gopher://example.com/", "ws://example.com/"],
    "credentials": [
        *("http://user@example.com/", "http://user:pass@example.com/", "http://@example.com/"),
        *("http://example.com\\@127.0.0.1/", "http://example.com%2f@x/"),
    ],
    "host": [
        *("http://", "http:///path", "http://:80/", "http://example.com:/", "http://example.com:080/"),
        *("http://example.com:0/", "http://example.com:eighty/", "http://example.com:\uff18\uff10/"),
        *("http://example.com:80:80/", "http://example..com/", "http://.example.com/", "http://example.com./"),
        *("http://-example.com/", "http://" + "a" * 64 + ".com/", "http://" + "a." * 126 + "aa/"),
        *("http://exam ple.com/", "http://example.com\\path", "http://exam%70le.com/", "http://1.2.3/"),
        *("http://1.2.3.4.5/", "http://256.1.1.1/", "http://example.1/", "http://example.0x/", "http://[::1/"),
        *("http://::1/", "http://[::1%25lo]/", "http://[fe80::1%lo]/", "http://[v1.x]/", "http://[127.0.0.1]/"),
        *("http://[::1]x/", "http://xn--/", "http://\ufb01les.example/", "http://example\u3002com/"),
        *("http://example\uff0ecom/", "http://☃.example/"),
    ],
    "port": ["http://example.com:65536/"],
}


def test_any_other_spelling_is_blocked() -> None:
    for text, reason in ((text, reason) for reason, texts in BLOCKED.items() for text in texts):
        refused = refusal(parse_url, text)
        assert (refused.code, refused.details) == ("url_fetch_blocked", {"reason": reason}), ascii(text)
    assert "hunter2" not in str(refusal(parse_url, "http://jo:hunter2@example.com/"))


def test_spellings_of_the_same_page_have_the_same_key() -> None:
    for one, other in [
        ("http://example.com/a", "HTTP://EXAMPLE.COM:80/a#top"),
        ("http://example.com/~jo/", "http://example.com/%7Ejo/"),
        ("http://example.com/%c3%a4", "http://example.com/ä"),
        ("http://example.com/b", "http://example.com/a/%2E%2e/b"),
        ("http://example.com", "http://example.com/"),
        ("http://example.com/?q=%61", "http://example.com/?q=a"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
    ]:
        assert parse_url(one).key == parse_url(other).key, (one, other)
    for other in [
        *("https://example.com/a", "http://example.com/A", "http://example.com/a/", "http://example.com/a?"),
        *("http://example.com:8080/a", "http://www.example.com/a", "http://example.com/a?x=1"),
        "http://example.com/%2Fa",
    ]:
        assert parse_url("http://example.com/a").key != parse_url(other).key, other


def test_a_redirect_location_is_resolved_against_the_url() -> None:
    for location, target in [
        *(("/b", "/b"), ("b?x=1", "/dir/b?x=1"), ("?x=1", "/dir/a?x=1"), ("../b", "/b")),
        *(("/my file.pdf", "/my%20file.pdf"), ("\\\\other.example\\b", "/dir/%5C%5Cother.example%5Cb")),
        *(("//other.example/b", "http://other.example/b"), ("https://other.example/b", "https://other.example/b")),
    ]:
        joined = str(join_url(parse_url("http://example.com/dir/a"), location))
        assert joined.removeprefix("http://example.com") == target, location


def test_a_bad_redirect_location_is_blocked_and_not_quoted() -> None:
    for location in [
        *("file:///etc/passwd", "http://jo:secret@example.com/", "//secret.127.1/", "http://[secret"),
        *("ht\ttp://secret/", "gopher://secret/", "http://secret\x7f/", "http://0x7f000001/secret"),
    ]:
        refused = refusal(join_url, parse_url("http://example.com/"), location)
        assert (refused.code, "secret" in str(refused)) == ("url_fetch_blocked", False), location


def test_a_host_is_parsed_as_a_name_or_an_address() -> None:
    for text, authority, kind in [
        *(("http://example.com/", "example.com", "name"), ("https://example.com:80/", "example.com:80", "name")),
        *(("http://[::1]:80/", "[::1]", "address"), ("http://[::1]:8080/", "[::1]:8080", "address")),
        *(("http://127.0.0.1:8080/", "127.0.0.1:8080", "address"), ("http://localhost/", "localhost", "local")),
        *(("http://LOCALHOST:9/", "localhost:9", "local"), ("http://app.localhost/", "app.localhost", "local")),
        *(("http://notlocalhost/", "notlocalhost", "name"), ("http://localhost.example/", "localhost.example", "name")),
    ]:
        url = parse_url(text)
        assert (url.authority, url.address is not None, url.is_local) == (authority, kind == "address", kind == "local")


REPORT = "http://files.example/docs/report.pdf?download=1"


def test_a_file_is_named_by_content_disposition() -> None:
    for disposition, name in [
        ('attachment; filename="a b.pdf"', "a b.pdf"),
        ("attachment; filename=plain.pdf", "plain.pdf"),
        ("attachment;filename=plain.pdf;size=3", "plain.pdf"),
        ('attachment; FILENAME = "quo\\"te.pdf"', 'quo"te.pdf'),
        ("attachment; filename=\"x.pdf\"; filename*=UTF-8''na%C3%AFve.pdf", "naïve.pdf"),
        ("attachment; filename*=iso-8859-1'en'%A3.pdf", "£.pdf"),
        ('attachment; filename="C:\\\\docs\\\\a.pdf"', "a.pdf"),
        ("attachment; filename*=UTF-8''..%2F..%2Fetc%2Fpasswd; filename=b.pdf", "b.pdf"),
    ]:
        assert file_name(parse_url(REPORT), disposition) == name, disposition


def test_without_content_disposition_a_file_is_named_by_its_url() -> None:
    for disposition in [
        *("", "inline", "attachment; filename*=klingon''x.pdf", 'attachment; filename="../../etc/passwd"'),
        *('attachment; filename=""', 'attachment; filename="a\x07.pdf"', f'attachment; filename="{"x" * 300}"'),
        *('attachment; note="; filename=note.pdf"', "nonsense ;;; = filename"),
    ]:
        assert file_name(parse_url(REPORT), disposition) == "report.pdf", disposition
    for path, name in [
        *(("a%20b.pdf", "a b.pdf"), ("%E6%97%A5.pdf", "日.pdf"), ("", "files.example"), ("docs/", "files.example")),
        *(("%2e%2e%2fa.pdf", "a.pdf"), ("a%00b", "files.example"), ("docs%2Fa.pdf", "a.pdf")),
    ]:
        assert file_name(parse_url(f"http://files.example/{path}")) == name, path
    assert file_name(parse_url("http://[2606:4700::1]/")) == "2606:4700::1"
