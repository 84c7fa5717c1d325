"""The table of refused networks, and what an operator's rules change about it."""

from ipaddress import ip_address

import pytest

from svc_daemon.core.access.addresses import AddressPolicy, AllowedNetwork, is_public, parse_allowed
from svc_daemon.settings import SettingError

#: First and last address of each refused network, and what carries another address inside.
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


def test_a_special_address_is_not_public() -> None:
    for address in REFUSED:
        assert not is_public(ip_address(address))
        assert not AddressPolicy().permits(ip_address(address), 80)


def test_an_ordinary_address_is_public() -> None:
    for address in PUBLIC:
        assert is_public(ip_address(address))
        assert AddressPolicy().permits(ip_address(address), 443)


def test_public_addresses_are_fetched_on_web_ports_alone() -> None:
    for port, permitted in [(80, True), (443, True), (22, False), (8080, False), (1, False)]:
        assert AddressPolicy().permits(ip_address("8.8.8.8"), port) is permitted
        assert AddressPolicy().may_permit_port(port) is permitted


def test_a_rule_allows_its_network_and_its_port() -> None:
    for rules, address, port, permitted in [
        ("127.0.0.0/8", "127.0.0.1", 80, True),
        ("127.0.0.0/8", "127.9.9.9", 65535, True),
        ("127.0.0.0/8", "128.0.0.1", 8080, False),
        ("127.0.0.0/8", "10.0.0.1", 80, False),
        ("127.0.0.0/8", "::1", 80, False),
        ("127.0.0.0/8", "::ffff:127.0.0.1", 80, False),
        ("10.1.0.0/16:8443", "10.1.2.3", 8443, True),
        ("10.1.0.0/16:8443", "10.1.2.3", 443, False),
        ("10.1.0.0/16:8443", "10.2.0.1", 8443, False),
        ("10.1.0.0/16:8443", "8.8.8.8", 8443, False),
        ("10.1.0.0/16:8443", "8.8.8.8", 443, True),
        ("::1", "::1", 3000, True),
        ("::1", "127.0.0.1", 3000, False),
        ("fd00::/8:8080, 127.0.0.1:3000", "fd12::1", 8080, True),
        ("fd00::/8:8080, 127.0.0.1:3000", "127.0.0.1", 3000, True),
        ("fd00::/8:8080, 127.0.0.1:3000", "127.0.0.1", 8080, False),
        ("::/0", "::ffff:127.0.0.1", 80, False),
        ("::ffff:0:0/96", "::ffff:127.0.0.1", 80, False),
    ]:
        assert AddressPolicy(parse_allowed(rules)).permits(ip_address(address), port) is permitted


def test_the_daemon_never_fetches_from_itself() -> None:
    for own, address, port, permitted in [
        ("127.0.0.1", "127.0.0.1", 7820, False),
        ("127.0.0.1", "127.0.0.2", 7820, False),
        ("127.0.0.1", "::1", 7820, False),
        ("127.0.0.1", "0.0.0.0", 7820, False),
        ("127.0.0.1", "::", 7820, False),
        ("127.0.0.1", "127.0.0.1", 7821, True),
        ("127.0.0.1", "10.0.0.1", 7820, True),
        ("10.0.0.1", "10.0.0.1", 7820, False),
        ("10.0.0.1", "10.0.0.2", 7820, True),
        ("0.0.0.0", "10.0.0.2", 7820, False),
        ("0.0.0.0", "127.0.0.1", 7820, False),
        ("::", "192.168.1.1", 7820, False),
        ("0.0.0.0", "8.8.8.8", 7820, True),
    ]:
        everything = parse_allowed("0.0.0.0/0, ::/0")
        policy = AddressPolicy(everything, own=(ip_address(own), 7820))
        assert policy.permits(ip_address(address), port) is permitted


def test_a_port_is_only_possible_where_a_rule_names_it_or_any() -> None:
    assert not AddressPolicy(parse_allowed("10.0.0.0/8:8443")).may_permit_port(8080)
    assert AddressPolicy(parse_allowed("10.0.0.0/8:8443")).may_permit_port(8443)
    assert AddressPolicy(parse_allowed("10.0.0.0/8")).may_permit_port(8080)


def test_rules_are_read() -> None:
    for text, networks in [
        ("", []),
        (" , ", []),
        ("127.0.0.0/8", [("127.0.0.0/8", None)]),
        ("10.1.0.0/16:8443,192.168.1.1", [("10.1.0.0/16", 8443), ("192.168.1.1/32", None)]),
        ("192.168.1.1:9000", [("192.168.1.1/32", 9000)]),
        ("fd00::/8", [("fd00::/8", None)]),
        ("::1/128:3000", [("::1/128", 3000)]),
        ("FD00::1", [("fd00::1/128", None)]),
    ]:
        assert [(str(rule.network), rule.port) for rule in parse_allowed(text)] == networks
        assert all(isinstance(rule, AllowedNetwork) for rule in parse_allowed(text))


def test_a_rule_that_is_no_network_is_refused() -> None:
    for text in [
        *("localhost", "10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/8:", "10.0.0.0/8:0", "10.0.0.0/8:65536"),
        *("10.0.0.0/8:http", "10.0.0.0/8:+80", "127.1", "2130706433", "0x7f.0.0.1", "[::1]:80", "127.0.0.1:", "*"),
        "10.0.0.0/8 127.0.0.0/8",
    ]:
        with pytest.raises(SettingError, match="SVC_FETCH_ALLOW must list networks") as refused:
            parse_allowed(f"127.0.0.0/8, {text}")
        assert repr(text) in str(refused.value)
