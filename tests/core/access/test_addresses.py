"""Tests which addresses may be fetched, by default and with an operator's rules."""

from ipaddress import ip_address

import pytest

from svc_daemon.core.access.addresses import AddressPolicy, is_public, parse_allowed
from svc_daemon.settings.errors import SettingError

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


def test_ordinary_addresses_are_public_and_special_ones_are_not() -> None:
    for addresses, public in [(PUBLIC, True), (REFUSED, False)]:
        for address in map(ip_address, addresses):
            assert is_public(address) is AddressPolicy().permits(address, 443) is public, address


def test_public_addresses_are_permitted_only_on_ports_80_and_443() -> None:
    for port, permitted in [(80, True), (443, True), (22, False), (8080, False), (1, False)]:
        assert AddressPolicy().permits(ip_address("8.8.8.8"), port) is permitted, port
        assert AddressPolicy().may_permit_port(port) is permitted, port


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


def test_the_daemons_own_address_is_never_permitted() -> None:
    everything = parse_allowed("0.0.0.0/0, ::/0")
    for own, permitted, refused in [
        ("127.0.0.1", "127.0.0.1 7821, 10.0.0.1 7820", "127.0.0.1, 127.0.0.2, ::1, 0.0.0.0, ::"),
        ("10.0.0.1", "10.0.0.2 7820", "10.0.0.1"),
        ("0.0.0.0", "8.8.8.8 7820", "10.0.0.2, 127.0.0.1"),
        ("::", "8.8.8.8 7820", "192.168.1.1"),
    ]:
        policy = AddressPolicy(everything, own=(ip_address(own), 7820))
        for address, port in (place.split() for place in permitted.split(", ")):
            assert policy.permits(ip_address(address), int(port)), (own, address, port)
        for address in refused.split(", "):
            assert not policy.permits(ip_address(address), 7820), (own, address)


def test_a_port_may_be_permitted_if_a_rule_has_that_port_or_none() -> None:
    for rules, port, possible in [
        *(("10.0.0.0/8:8443", 8080, False), ("10.0.0.0/8:8443", 8443, True), ("10.0.0.0/8", 8080, True))
    ]:
        assert AddressPolicy(parse_allowed(rules)).may_permit_port(port) is possible, (rules, port)


def test_rules_are_parsed() -> None:
    for text, networks in [
        *(("", []), (" , ", []), ("127.0.0.0/8", [("127.0.0.0/8", None)]), ("fd00::/8", [("fd00::/8", None)])),
        ("10.1.0.0/16:8443,192.168.1.1", [("10.1.0.0/16", 8443), ("192.168.1.1/32", None)]),
        *(("192.168.1.1:9000", [("192.168.1.1/32", 9000)]), ("::1/128:3000", [("::1/128", 3000)])),
        ("FD00::1", [("fd00::1/128", None)]),
    ]:
        assert [(str(rule.network), rule.port) for rule in parse_allowed(text)] == networks, text


def test_a_rule_that_is_not_a_network_is_refused() -> None:
    for text in [
        *("localhost", "10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/8:", "10.0.0.0/8:0", "10.0.0.0/8:65536"),
        *("10.0.0.0/8:http", "10.0.0.0/8:+80", "127.1", "2130706433", "0x7f.0.0.1", "[::1]:80", "127.0.0.1:", "*"),
        "10.0.0.0/8 127.0.0.0/8",
    ]:
        with pytest.raises(SettingError, match="SVC_FETCH_ALLOW must list networks") as refused:
            parse_allowed(f"127.0.0.0/8, {text}")
        assert repr(text) in str(refused.value)
