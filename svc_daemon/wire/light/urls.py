"""The canonical form of an http or https URL.

Ambiguous spellings, in which programs see different hosts, are refused.
"""

import re
import unicodedata
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address

import idna

#: Maximum length of a URL. RFC 9110, 4.1, recommends at least 8,000.
MAX_CHARACTERS = 8000
DEFAULT_PORTS = {"http": 80, "https": 443}

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*)://([^/?#]*)([^#]*)(?:#.*)?")
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]]+)(?::([1-9][0-9]{0,4}))?")
#: A part of a host name between dots. Some storage services use underscores.
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_\-]{0,61}[a-z0-9_])?")
#: If the last part of a host name matches this, some programs read the name as an IPv4 address.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
#: Characters that must be escaped in a path or query, and a percent sign that does not begin an escape.
_UNSAFE = re.compile(r"%(?![0-9A-Fa-f]{2})|[^A-Za-z0-9\-._~:/?\[\]@!$&'()*+,;=%]")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = re.compile(r"[A-Za-z0-9\-._~]")


class OddUrl(ValueError):
    """A text that is no plain URL. `reason` is one of url, scheme, credentials, host and port."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Url:
    """An http or https URL in canonical form, without user name, password and fragment."""

    scheme: str
    #: A host name in lower-case ASCII, or an IP address; IPv6 without brackets.
    host: str
    port: int
    #: Path and query, escaped, without dot segments.
    target: str

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"

    @property
    def authority(self) -> str:
        """Return host and port as in a `Host` header, without a default port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def address(self) -> IPv4Address | IPv6Address | None:
        """Return the host as an address if it is one; None if it is a name."""
        if ":" in self.host:
            return IPv6Address(self.host)
        return IPv4Address(self.host) if _ends_in_number(self.host) else None

    @property
    def is_local(self) -> bool:
        """Return whether the host is `localhost` or a subdomain, which DNS must not resolve (RFC 6761, 6.3)."""
        return self.host == "localhost" or self.host.endswith(".localhost")

    @property
    def key(self) -> str:
        """Return the normalized URL (RFC 3986, 6.2.2), the same for equivalent spellings.

        Two web pages with the same key count as the same page.
        """
        path, mark, query = self.target.partition("?")
        # Unescaping `%2E` may have made a segment `.` or `..`.
        path = _without_dots(_ESCAPE.sub(_plain_escape, path))
        return f"{self.scheme}://{self.authority}{path}{mark}{_ESCAPE.sub(_plain_escape, query)}"


def read_url(text: str) -> Url:
    """Parse a URL; raises OddUrl for anything that is not a plain http or https URL."""
    text = text.strip(" ")
    if len(text) > MAX_CHARACTERS:
        raise OddUrl(f"A URL must not be longer than {MAX_CHARACTERS} characters.", "url")
    if not text.isprintable():
        raise OddUrl("A URL must not contain control characters or invisible ones.", "url")
    match = _URL.fullmatch(text)
    if match is None:
        raise OddUrl("A URL must start with http:// or https:// and a host.", "url")
    scheme, authority, target = match[1].lower(), match[2], match[3]
    if scheme not in DEFAULT_PORTS:
        raise OddUrl(f"Only http and https URLs are fetched, not {scheme[:40]!r}.", "scheme")
    if "@" in authority:
        raise OddUrl("A URL must not carry a user name or password.", "credentials")
    named = _AUTHORITY.fullmatch(authority)
    if named is None:
        raise OddUrl("A URL's host must be a name or an address, with at most a port behind it.", "host")
    port = int(named[2] or DEFAULT_PORTS[scheme])
    if port > 65535:
        raise OddUrl(f"{port} is not a port.", "port")
    path, mark, query = target.partition("?")
    canonical = _without_dots(_UNSAFE.sub(_escape, path)) + mark + _UNSAFE.sub(_escape, query)
    return Url(scheme, _canonical_host(named[1]), port, canonical)


def normal_url(text: str) -> str:
    """Return what is the same for all spellings of a URL; a text that is no plain URL stays as it is."""
    try:
        return read_url(text).key
    except OddUrl:
        return text


def _canonical_host(host: str) -> str:
    # Some programs convert fullwidth, circled and similar characters to ASCII, so refuse them.
    is_odd = not host.isascii() and (unicodedata.normalize("NFKC", host) != host or "\u3002" in host)
    try:
        if host.startswith("["):
            return str(IPv6Address(host[1:-1]))
        name = host.lower() if host.isascii() or is_odd else idna.encode(host.lower()).decode("ascii")
        if not is_odd and _ends_in_number(name):
            # Some programs also read a single number, three numbers, hex or octal as an address.
            return str(IPv4Address(name))
    except (AddressValueError, idna.IDNAError) as error:
        raise _odd_host(host.strip("[]")) from error
    if is_odd or len(name) > 253 or not all(_LABEL.fullmatch(label) for label in name.split(".")):
        raise _odd_host(host)
    return name


def _odd_host(host: str) -> OddUrl:
    return OddUrl(
        f"The host {host[:80]!r} is not spelled plainly; write a name, four decimal numbers, or an IPv6 address in "
        "brackets.",
        "host",
    )


def _ends_in_number(name: str) -> bool:
    return _NUMBER.fullmatch(name.rpartition(".")[2]) is not None


def _escape(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode())


def _plain_escape(found: re.Match[str]) -> str:
    """Unescape an unreserved character; write any other escape in upper case."""
    character = chr(int(found[1], 16))
    return character if _UNRESERVED.fullmatch(character) else found[0].upper()


def _without_dots(path: str) -> str:
    """Remove the segments `.` and `..` from an absolute path (RFC 3986, 5.2.4)."""
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    # A final `.` or `..` means a folder, so the result ends with a slash.
    folder = segments[-1:] in (["."], [".."])
    return "/" + "/".join([*kept, ""] if folder else kept)
