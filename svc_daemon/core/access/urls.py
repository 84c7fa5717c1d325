"""Which URLs may be fetched, and the network addresses that the daemon may connect to.

`ipaddress.is_global` is not enough: some Python releases accept multicast, IPv6 tunnels and cloud providers' own
services.

A URL that is checked as one host but connected to as another would bypass the check. So the connection uses the host
that was checked.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from urllib.parse import unquote, urljoin

from svc_daemon.core.uploads.source_fields import clean_file_name
from svc_daemon.errors import ServiceError
from svc_daemon.settings.limits import SettingError
from svc_daemon.wire.light.error_codes import ErrorCode
from svc_daemon.wire.light.urls import OddUrl, Url, read_url

IpAddress = IPv4Address | IPv6Address
IpNetwork = IPv4Network | IPv6Network

#: Ports to which the daemon may connect by default.
WEB_PORTS = frozenset({80, 443})

#: The addresses that `localhost` and its subdomains resolve to (RFC 6761, 6.3).
LOOPBACKS: tuple[IpAddress, ...] = (IPv4Address("127.0.0.1"), IPv6Address("::1"))

_REFUSED_V4 = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this host on this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carrier-grade NAT; metadata service of some clouds
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # Azure's platform services, within public address space
        "169.254.0.0/16",  # link-local; metadata service of most clouds
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # IETF protocol assignments; metadata service of one cloud
        "192.0.2.0/24",  # documentation
        "192.31.196.0/24",  # AS112
        "192.52.193.0/24",  # automatic multicast tunneling
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "192.175.48.0/24",  # AS112
        "198.18.0.0/15",  # benchmarking of network devices
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
)

#: All public IPv6 addresses are in this network; private and mapped ones are not.
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_REFUSED_V6 = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # IETF protocol assignments, such as Teredo and ORCHID
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4, which embeds an IPv4 address
        "2620:4f:8000::/48",  # AS112
        "3fff::/20",  # documentation
    )
)


@dataclass(frozen=True, slots=True)
class AllowedNetwork:
    """A network to which the operator lets the daemon connect."""

    network: IpNetwork
    #: The only port that is allowed; None allows any port.
    port: int | None = None

    def holds(self, address: IpAddress, port: int) -> bool:
        return address in self.network and self.port in (None, port)


@dataclass(frozen=True, slots=True)
class AddressPolicy:
    """Decides to which addresses the daemon may connect; by default public ones, on ports 80 and 443."""

    allowed: tuple[AllowedNetwork, ...] = ()
    #: The address and port that this daemon listens on. A daemon must never connect to itself.
    own: tuple[IpAddress, int] | None = None

    def permits(self, address: IpAddress, port: int) -> bool:
        # Refuse IPv4-mapped addresses: the IPv4 rules would not be applied to them.
        if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
            return False
        if self.own is not None and port == self.own[1]:
            # A connection to 0.0.0.0 or :: reaches this machine. A daemon that listens there listens on all addresses.
            own = self.own[0]
            is_here = address == own or address.is_loopback or address.is_unspecified
            if is_here or (own.is_unspecified and not is_public(address)):
                return False
        if any(allowed.holds(address, port) for allowed in self.allowed):
            return True
        return port in WEB_PORTS and is_public(address)

    def may_permit_port(self, port: int) -> bool:
        """Return whether any address is permitted on this port; if not, the host's name need not be looked up."""
        return port in WEB_PORTS or any(allowed.port in (None, port) for allowed in self.allowed)


def is_public(address: IpAddress) -> bool:
    """Return whether the address is an ordinary address on the public internet."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _REFUSED_V4)
    return address in _GLOBAL_UNICAST and not any(address in network for network in _REFUSED_V6)


def parse_allowed(text: str) -> tuple[AllowedNetwork, ...]:
    """Parse `SVC_FETCH_ALLOW`, such as `127.0.0.0/8, 10.1.0.0/16:8443`. Raises SettingError."""
    allowed = []
    for entry in filter(None, map(str.strip, text.split(","))):
        try:
            network, port = _split_port(entry)
            allowed.append(AllowedNetwork(ip_network(network), port))
        except ValueError as error:
            raise SettingError(
                f"SVC_FETCH_ALLOW must list networks, each with a port or without, such as 127.0.0.0/8 or "
                f"10.1.0.0/16:8443; {entry!r} is none ({error})."
            ) from error
    return tuple(allowed)


def _split_port(entry: str) -> tuple[str, int | None]:
    """Split an entry of `SVC_FETCH_ALLOW` into its network and its port, if it has one.

    A colon begins a port only after a prefix length (`/16:8443`) or an IPv4 address. Other colons are part of an IPv6
    address.
    """
    address, slash, rest = entry.partition("/")
    if not slash and entry.count(":") != 1:
        return entry, None
    head, colon, port = (rest if slash else address).partition(":")
    if colon and not (port.isascii() and port.isdigit() and 1 <= int(port) <= 65535):
        raise ValueError(f"{port!r} is not a port")
    return f"{address}/{head}" if slash else head, int(port) if colon else None


#: One parameter of `Content-Disposition`, with a quoted or unquoted value.
_PARAMETER = re.compile(r';\s*([\w\-*]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;\s]*))')
_EXTENDED = re.compile(r"(utf-8|iso-8859-1)'[^']*'(.+)", re.IGNORECASE)


def blocked(message: str, reason: str) -> ServiceError:
    """Build a 400 `url_fetch_blocked`. `reason` is one of url, scheme, credentials, host, port and address."""
    return ServiceError(ErrorCode.URL_FETCH_BLOCKED, message, reason=reason)


@contextmanager
def naming(field: str) -> Iterator[None]:
    """Name the field of the request in the error for its URL."""
    try:
        yield
    except ServiceError as error:
        raise ServiceError(error.code, f"{field}: {error.message}", **error.details) from error


def parse_url(text: str) -> Url:
    """Parse a URL; raises `url_fetch_blocked` for anything that is not a plain http or https URL."""
    try:
        return read_url(text)
    except OddUrl as error:
        raise blocked(str(error), error.reason) from error


def join_url(url: Url, location: str) -> Url:
    """Resolve the `Location` of a redirect against the URL that sent it.

    Raises `url_fetch_blocked`; its message omits the location.
    """
    # `urljoin` silently drops tabs and line breaks, which must be refused.
    if not location.isprintable():
        raise _bad_redirect("url")
    try:
        return parse_url(urljoin(str(url), location))
    except ServiceError as error:
        raise _bad_redirect(error.details["reason"]) from error
    except ValueError as error:
        raise _bad_redirect("url") from error


def file_name(url: Url, disposition: str = "") -> str:
    """Choose a file name: from `Content-Disposition`, otherwise from the URL's path, otherwise the host.

    Invalid names are skipped, so that they don't make the import fail.
    """
    values = {
        name.lower(): re.sub(r"\\(.)", r"\1", quoted) or bare for name, quoted, bare in _PARAMETER.findall(disposition)
    }
    # RFC 6266 prefers `filename*`, which can have any characters.
    extended = _EXTENDED.fullmatch(values.get("filename*", ""))
    best = [unquote(extended[2], encoding=extended[1], errors="replace")] if extended else []
    for candidate in (*best, values.get("filename", ""), unquote(url.target.partition("?")[0]).rpartition("/")[2]):
        try:
            return clean_file_name(candidate)
        except ServiceError:
            continue
    return url.host


def _bad_redirect(reason: str) -> ServiceError:
    return blocked("A redirect leads to a URL that the fetch policy refuses.", reason)
