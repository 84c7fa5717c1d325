"""Tests which URLs and addresses may be fetched, by default and with an operator's rules, and how files are named."""

from ipaddress import ip_address
from typing import Any

import pytest

from svc_daemon.core.access.urls import (
    AddressPolicy,
    file_name,
    is_public,
    join_url,
    parse_allowed,
    parse_url,
)
from svc_daemon.settings.limits import SettingError
from svc_daemon.wire.light.urls import MAX_CHARACTERS
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


@pytest.mark.parametrize(
    ("location", "target"),
    [
        *(("/b", "/b"), ("b?x=1", "/dir/b?x=1"), ("?x=1", "/dir/a?x=1"), ("../b", "/b")),
        *(("/my file.pdf", "/my%20file.pdf"), ("\\\\other.example\\b", "/dir/%5C%5Cother.example%5Cb")),
        *(("//other.example/b", "http://other.example/b"), ("https://other.example/b", "https://other.example/b")),
    ],
)
def test_a_redirect_location_is_resolved_against_the_url(location: str, target: str) -> None:
    joined = str(join_url(parse_url("http://example.com/dir/a"), location))
    assert joined.removeprefix("http://example.com") == target


@pytest.mark.parametrize(
    "location",
    [
        *("file:///etc/passwd", "http://jo:secret@example.com/", "//secret.127.1/", "http://[secret"),
        *("ht\ttp://secret/", "gopher://secret/", "http://secret\x7f/", "http://0x7f000001/secret"),
    ],
)
def test_a_bad_redirect_location_is_blocked_and_not_quoted(location: str) -> None:
    refused = refusal(join_url, parse_url("http://example.com/"), location)
    assert (refused.code, "secret" in str(refused)) == ("url_fetch_blocked", False)


@pytest.mark.parametrize(
    ("text", "authority", "kind"),
    [
        *(("http://example.com/", "example.com", "name"), ("https://example.com:80/", "example.com:80", "name")),
        *(("http://[::1]:80/", "[::1]", "address"), ("http://[::1]:8080/", "[::1]:8080", "address")),
        *(("http://127.0.0.1:8080/", "127.0.0.1:8080", "address"), ("http://localhost/", "localhost", "local")),
        *(("http://LOCALHOST:9/", "localhost:9", "local"), ("http://app.localhost/", "app.localhost", "local")),
        *(("http://notlocalhost/", "notlocalhost", "name"), ("http://localhost.example/", "localhost.example", "name")),
    ],
)
def test_a_host_is_parsed_as_a_name_or_an_address(text: str, authority: str, kind: str) -> None:
    url = parse_url(text)
    assert (url.authority, url.address is not None, url.is_local) == (authority, kind == "address", kind == "local")


REPORT = "http://files.example/docs/report.pdf?download=1"


@pytest.mark.parametrize(
    ("disposition", "name"),
    [
        ('attachment; filename="a b.pdf"', "a b.pdf"),
        ("attachment; filename=plain.pdf", "plain.pdf"),
        ("attachment;filename=plain.pdf;size=3", "plain.pdf"),
        ('attachment; FILENAME = "quo\\"te.pdf"', 'quo"te.pdf'),
        ("attachment; filename=\"x.pdf\"; filename*=UTF-8''na%C3%AFve.pdf", "naïve.pdf"),
        ("attachment; filename*=iso-8859-1'en'%A3.pdf", "£.pdf"),
        ('attachment; filename="C:\\\\docs\\\\a.pdf"', "a.pdf"),
        ("attachment; filename*=UTF-8''..%2F..%2Fetc%2Fpasswd; filename=b.pdf", "b.pdf"),
    ],
)
def test_a_file_is_named_by_content_disposition(disposition: str, name: str) -> None:
    assert file_name(parse_url(REPORT), disposition) == name


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


#: First and last address of each refused network, and addresses that contain another address.
REFUSED = [
    *("0.0.0.0", "0.255.255.255", "10.0.0.0", "10.255.255.255", "100.64.0.0", "100.100.100.200", "100.127.255.255"),
    *("127.0.0.1", "127.255.255.255", "168.63.129.16", "169.254.0.0", "169.254.169.254", "169.254.255.255"),
    *("172.16.0.0", "172.31.255.255", "192.0.0.0", "192.0.0.192", "192.0.2.1", "192.31.196.1", "192.52.193.1"),
    *("192.88.99.1", "192.168.0.0", "192.168.255.255", "192.175.48.1", "198.18.0.0", "198.19.255.255"),
    *("198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.0", "255.255.255.255", "::", "::1"),
    *("::127.0.0.1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "64:ff9b::7f00:1", "64:ff9b::808:808", "64:ff9b:1::1"),
    *("100::1", "2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:2::1", "2001:10::1", "2001:20::1"),
    *("2001:1ff:ffff::1", "2001:db8::1", "2002:7f00:1::1", "2002:808:808::1", "2620:4f:8000::1", "3fff::1"),
    *("3fff:fff:ffff::1", "1fff::1", "4000::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fdff::1", "fe80::1"),
    *("fe80::1%1", "fec0::1", "ff02::1", "ff0e::1"),
]

#: Neighbours of the refused networks, and ordinary addresses.
PUBLIC = [
    *("1.0.0.0", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255"),
    *("128.0.0.0", "168.63.129.15", "168.63.129.17", "169.253.255.255", "169.255.0.0", "172.15.255.255"),
    *("172.32.0.0", "192.0.1.0", "192.88.98.255", "192.88.100.0", "192.167.255.255", "192.169.0.0"),
    *("198.17.255.255", "198.20.0.0", "223.255.255.255", "2000::1", "2001:200::1", "2001:4860:4860::8888"),
    *("2001:db7:ffff::1", "2001:db9::1", "2003::1", "2606:4700:4700::1111", "2620:4f:7fff::1", "3ffe:ffff::1"),
]


@pytest.mark.parametrize(("addresses", "public"), [(PUBLIC, True), (REFUSED, False)])
def test_ordinary_addresses_are_public_and_special_ones_are_not(addresses: list[str], public: bool) -> None:
    for address in map(ip_address, addresses):
        assert is_public(address) is AddressPolicy().permits(address, 443) is public, address


@pytest.mark.parametrize(("port", "permitted"), [(80, True), (443, True), (22, False), (8080, False), (1, False)])
def test_public_addresses_are_permitted_only_on_ports_80_and_443(port: int, permitted: bool) -> None:
    assert AddressPolicy().permits(ip_address("8.8.8.8"), port) is permitted
    assert AddressPolicy().may_permit_port(port) is permitted


def test_a_rule_permits_only_its_network_and_port() -> None:
    two = "fd00::/8:8080, 127.0.0.1:3000"
    for rules, permitted, refused in [
        ("127.0.0.0/8", "127.0.0.1 80, 127.9.9.9 65535", "128.0.0.1 8080, 10.0.0.1 80, ::1 80, ::ffff:127.0.0.1 80"),
        ("10.1.0.0/16:8443", "10.1.2.3 8443, 8.8.8.8 443", "10.1.2.3 443, 10.2.0.1 8443, 8.8.8.8 8443"),
        *(("::1", "::1 3000", "127.0.0.1 3000"), (two, "fd12::1 8080, 127.0.0.1 3000", "127.0.0.1 8080")),
        *(("::/0", "::1 80", "::ffff:127.0.0.1 80"), ("::ffff:0:0/96", "8.8.8.8 80", "::ffff:127.0.0.1 80")),
    ]:
        policy = AddressPolicy(parse_allowed(rules))
        for places, is_permitted in [(permitted, True), (refused, False)]:
            for address, port in (place.split() for place in places.split(", ")):
                assert policy.permits(ip_address(address), int(port)) is is_permitted, (rules, address, port)


@pytest.mark.parametrize(
    ("own", "permitted", "refused"),
    [
        ("127.0.0.1", "127.0.0.1 7821, 10.0.0.1 7820", "127.0.0.1, 127.0.0.2, ::1, 0.0.0.0, ::"),
        ("10.0.0.1", "10.0.0.2 7820", "10.0.0.1"),
        ("0.0.0.0", "8.8.8.8 7820", "10.0.0.2, 127.0.0.1"),
        ("::", "8.8.8.8 7820", "192.168.1.1"),
    ],
)
def test_the_daemons_own_address_is_never_permitted(own: str, permitted: str, refused: str) -> None:
    everything = parse_allowed("0.0.0.0/0, ::/0")
    policy = AddressPolicy(everything, own=(ip_address(own), 7820))
    for address, port in (place.split() for place in permitted.split(", ")):
        assert policy.permits(ip_address(address), int(port)), (own, address, port)
    for address in refused.split(", "):
        assert not policy.permits(ip_address(address), 7820), (own, address)


@pytest.mark.parametrize(
    ("rules", "port", "possible"),
    [*(("10.0.0.0/8:8443", 8080, False), ("10.0.0.0/8:8443", 8443, True), ("10.0.0.0/8", 8080, True))],
)
def test_a_port_may_be_permitted_if_a_rule_has_that_port_or_none(rules: str, port: int, possible: bool) -> None:
    assert AddressPolicy(parse_allowed(rules)).may_permit_port(port) is possible


@pytest.mark.parametrize(
    ("text", "networks"),
    [
        *(("", []), (" , ", []), ("127.0.0.0/8", [("127.0.0.0/8", None)]), ("fd00::/8", [("fd00::/8", None)])),
        ("10.1.0.0/16:8443,192.168.1.1", [("10.1.0.0/16", 8443), ("192.168.1.1/32", None)]),
        *(("192.168.1.1:9000", [("192.168.1.1/32", 9000)]), ("::1/128:3000", [("::1/128", 3000)])),
        ("FD00::1", [("fd00::1/128", None)]),
    ],
)
def test_rules_are_parsed(text: str, networks: Any) -> None:
    assert [(str(rule.network), rule.port) for rule in parse_allowed(text)] == networks


@pytest.mark.parametrize(
    "text",
    [
        *("localhost", "10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/8:", "10.0.0.0/8:0", "10.0.0.0/8:65536"),
        *("10.0.0.0/8:http", "10.0.0.0/8:+80", "127.1", "2130706433", "0x7f.0.0.1", "[::1]:80", "127.0.0.1:", "*"),
        "10.0.0.0/8 127.0.0.0/8",
    ],
)
def test_a_rule_that_is_not_a_network_is_refused(text: str) -> None:
    with pytest.raises(SettingError, match="SVC_FETCH_ALLOW must list networks") as refused:
        parse_allowed(f"127.0.0.0/8, {text}")
    assert repr(text) in str(refused.value)
