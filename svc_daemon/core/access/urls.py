"""URLs that may be fetched: strict parsing, the canonical form, and the file name in a URL.

A URL that is checked as one host but connected to as another would bypass the check. So ambiguous spellings are
refused, and the connection uses the host that was checked.
"""

import re
import unicodedata
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from urllib.parse import unquote, urljoin

import idna

from svc_daemon.core.access.addresses import IpAddress
from svc_daemon.core.uploads.source_fields import clean_file_name
from svc_daemon.errors import ServiceError
from svc_daemon.wire.error_codes import ErrorCode

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

#: One parameter of `Content-Disposition`, with a quoted or unquoted value.
_PARAMETER = re.compile(r';\s*([\w\-*]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;\s]*))')
_EXTENDED = re.compile(r"(utf-8|iso-8859-1)'[^']*'(.+)", re.IGNORECASE)


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
    def address(self) -> IpAddress | None:
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


def blocked(message: str, reason: str) -> ServiceError:
    """Build a 400 `url_fetch_blocked`. `reason` is one of url, scheme, credentials, host, port and address."""
    return ServiceError(ErrorCode.URL_FETCH_BLOCKED, message, reason=reason)


def parse_url(text: str) -> Url:
    """Parse a URL; raises `url_fetch_blocked` for anything that is not a plain http or https URL."""
    text = text.strip(" ")
    if len(text) > MAX_CHARACTERS:
        raise blocked(f"A URL must not be longer than {MAX_CHARACTERS} characters.", "url")
    if not text.isprintable():
        raise blocked("A URL must not contain control characters or invisible ones.", "url")
    match = _URL.fullmatch(text)
    if match is None:
        raise blocked("A URL must start with http:// or https:// and a host.", "url")
    scheme, authority, target = match[1].lower(), match[2], match[3]
    if scheme not in DEFAULT_PORTS:
        raise blocked(f"Only http and https URLs are fetched, not {scheme[:40]!r}.", "scheme")
    if "@" in authority:
        raise blocked("A URL must not carry a user name or password.", "credentials")
    named = _AUTHORITY.fullmatch(authority)
    if named is None:
        raise blocked("A URL's host must be a name or an address, with at most a port behind it.", "host")
    port = int(named[2] or DEFAULT_PORTS[scheme])
    if port > 65535:
        raise blocked(f"{port} is not a port.", "port")
    path, mark, query = target.partition("?")
    canonical = _without_dots(_UNSAFE.sub(_escape, path)) + mark + _UNSAFE.sub(_escape, query)
    return Url(scheme, _canonical_host(named[1]), port, canonical)


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


def _bad_redirect(reason: str) -> ServiceError:
    return blocked("A redirect leads to a URL that the fetch policy refuses.", reason)


def _odd_host(host: str) -> ServiceError:
    return blocked(
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
