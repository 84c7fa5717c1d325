"""Calendars (iCalendar) and contacts (vCard): each event, task or contact under its name, as programs show it.

Both consist of lines such as `TEL;TYPE=cell:+49 30 1`, which are folded, and whose signs are escaped.
"""

import quopri
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date, timedelta
from typing import NamedTuple

from svc_daemon.core.text.chunking import Document
from svc_daemon.extract.builders import FlowDocument, one_line
from svc_daemon.extract.formats import Given
from svc_daemon.extract.formats.mail.headers import decode_bytes

_FOLD = re.compile(rb"\r?\n[ \t]")
_LINE = re.compile(r'(?:[\w-]+\.)?([A-Za-z][\w-]*)((?:;(?:"[^"]*"|[^":;])*)*):(.*)', re.DOTALL)
_PARAMETER = re.compile(r';([\w-]+)(?:=((?:"[^"]*"|[^";])*))?')
#: A line of vCard 2.1 with `quoted-printable` goes on after a `=`.
_PRINTABLE = re.compile(
    rb"^(?=[^:\r\n]*;(?:ENCODING=)?QUOTED-PRINTABLE)[^:\r\n]*+:(?:[^\r\n]*=\r?\n)*[^\r\n]*",
    re.IGNORECASE | re.MULTILINE,
)
_SOFT_END = re.compile(rb"=\r?\n")
_ESCAPED = re.compile(r"\\([\\,;nN:])")
_SPLIT = re.compile(r"(?<!\\)((?:\\\\)*);")
_TIME = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)(?:T(\d\d):?(\d\d):?(\d\d)?(Z)?.*)?")
#: Components that are read; `VALARM` and `VTIMEZONE` within them are not shown.
_SHOWN = {"VEVENT": "Event", "VTODO": "Task", "VJOURNAL": "Entry", "VCARD": "Contact"}
#: What a property is called; the others have their own name.
_NAMES = {"DTSTART": "Start", "DTEND": "End", "RRULE": "Repeats", "EXDATE": "Not on", "RDATE": "Also on"}
_NAMES |= {"RECURRENCE-ID": "Instead of", "TEL": "Phone", "EMAIL": "E-mail", "ADR": "Address", "BDAY": "Birthday"}
_NAMES |= {"ORG": "Organization", "URL": "Website", "TITLE": "Position", "IMPP": "Chat"}
_TIMES = frozenset(("DTSTART", "DTEND", "DUE", "EXDATE", "RDATE", "RECURRENCE-ID", "BDAY", "ANNIVERSARY", "COMPLETED"))
#: What nobody sees, beside names that begin with `X-`, and what has a place of its own.
_UNSEEN = re.compile(
    "X-.*|VERSION|PRODID|UID|REV|PHOTO|LOGO|SOUND|KEY|DTSTAMP|CREATED|LAST-MODIFIED|SEQUENCE|TRANSP|CALSCALE|METHOD|"
    "PROFILE|SORT-STRING|MAILER|TZ|GEO|SOURCE|CLIENTPIDMAP|FBURL|CALADRURI|CALURI|ATTACH|AGENT|KIND|REQUEST-STATUS|"
    "SUMMARY|FN|N|DESCRIPTION|NOTE"
)
_DAYS = {"MO": "Monday", "TU": "Tuesday", "WE": "Wednesday", "TH": "Thursday", "FR": "Friday", "SA": "Saturday"}
_DAYS["SU"] = "Sunday"
_MARKED_TYPES = frozenset(("pref", "internet", "voice", "x400", "x-internet"))


class Property(NamedTuple):
    """A line: its name in capitals, its parameters, and its value as it is written."""

    name: str
    parameters: Mapping[str, str]
    value: str

    @property
    def text(self) -> str:
        return _ESCAPED.sub(lambda match: "\n" if match[1] in "nN" else match[1], self.value)

    @property
    def parts(self) -> list[str]:
        """Return the parts of a name or an address that are not blank."""
        parts = _SPLIT.sub("\\1\0", self.value).split("\0")
        return [text for part in parts if (text := one_line(self._replace(value=part).text))]


def read(given: Given) -> Document:
    """Read each event, task or contact."""
    flow = FlowDocument()
    title, warned = "", dict[str, None]()
    properties: list[Property] = []
    opened: list[str] = []
    for each in _properties(given, warned):
        if each.name == "BEGIN":
            opened.append(each.value.strip().upper())
            properties = [] if opened[-1] in _SHOWN else properties
        elif each.name == "END":
            ended = opened.pop() if opened else ""
            # What is around another one has no lines of its own: they are not shown once more.
            if ended in _SHOWN and properties:
                add(flow, _SHOWN[ended], properties)
                properties = []
        elif opened and opened[-1] in _SHOWN:
            properties.append(each)
        elif each.name == "X-WR-CALNAME":
            title = one_line(each.text)
    if opened and opened[-1] in _SHOWN:
        # The file is cut off.
        add(flow, _SHOWN[opened[-1]], properties)
    return flow.finish(title=title or flow.headings.first, warnings=warned)


def _properties(given: Given, warned: dict[str, None]) -> Iterator[Property]:
    """Yield the lines, whose values may have an encoding of their own."""
    data = _FOLD.sub(b"", _PRINTABLE.sub(lambda match: _SOFT_END.sub(b"", match[0]), given.data))
    text, warnings = decode_bytes(data, given.charset)
    warned.update(dict.fromkeys(warnings))
    for line in text.removeprefix("\ufeff").splitlines():
        if match := _LINE.fullmatch(line):
            found = [(key.upper(), (value or key).strip('"')) for key, value in _PARAMETER.findall(match[2])]
            parameters = dict(found)
            types = [value.lower() for key, value in found if key == "TYPE" or (value == key and key != "PREF")]
            parameters["TYPE"] = ",".join(types)
            value = match[3]
            if "quoted-printable" in (parameters["TYPE"], parameters.get("ENCODING", "").lower()):
                raw = quopri.decodestring(value.encode("utf-8"))
                value = decode_bytes(raw, parameters.get("CHARSET", ""))[0].replace("\r\n", "\n")
            yield Property(match[1].upper(), parameters, value)


def add(flow: FlowDocument, kind: str, properties: list[Property]) -> None:
    """Add an event, task or contact: its name as a heading, a line for each property, and its text."""
    flow.headings.clear()
    first = {each.name: each for each in reversed(properties)}
    named = next((first[name] for name in ("SUMMARY", "FN") if name in first and first[name].text.strip()), None)
    parts = first["N"].parts if "N" in first else first["ORG"].parts if "ORG" in first else []
    flow.add_heading(1, named.text if named else " ".join([*parts[1:2], *parts[:1]]) or kind)
    begin = time_of(first["DTSTART"].value, first["DTSTART"]) if "DTSTART" in first else ""
    lines = dict.fromkeys(filter(None, map(line_of, properties)))
    flow.add("paragraph", "\n".join(line for line in lines if line != f"End: {begin}"))
    for name in ("DESCRIPTION", "NOTE"):
        flow.add_all("paragraph", (each.text for each in properties if each.name == name))


def line_of(each: Property) -> str:
    """Return the line of a property; empty if nobody sees it."""
    if _UNSEEN.fullmatch(each.name) or each.parameters.get("ENCODING", "").lower() in ("b", "base64"):
        return ""
    types = [kind for kind in each.parameters["TYPE"].split(",") if kind and kind not in _MARKED_TYPES]
    name = _NAMES.get(each.name, each.name.capitalize()) + (f" ({', '.join(types)})" if types else "")
    if each.name in _TIMES:
        value = ", ".join(time_of(time, each) for time in each.value.split(","))
    elif each.name == "RRULE":
        value = _rule(each.value)
    elif each.name in ("ORGANIZER", "ATTENDEE"):
        person, mail = each.parameters.get("CN", ""), re.sub("(?i)^mailto:", "", each.value)
        value = f"{person} <{mail}>" if person and mail and person != mail else person or mail
        answer = each.parameters.get("PARTSTAT", "").lower().replace("-", " ")
        value += f" ({answer})" if answer and each.name == "ATTENDEE" else ""
    elif each.name in ("ADR", "ORG"):
        value = ", ".join(each.parts)
    else:
        value = one_line(each.text.lower() if each.name == "STATUS" else each.text)
        value = re.sub("(?i)^(?:tel|mailto):", "", value) if each.name in ("TEL", "EMAIL") else value
    return f"{name}: {value}" if value else ""


def time_of(time: str, given: Property) -> str:
    """Return a date, with its time and zone if it has them."""
    match = _TIME.fullmatch(time.strip())
    if not match:
        return one_line(time)
    day, zone = "-".join(match.groups()[:3]), "UTC" if match[7] else given.parameters.get("TZID", "")
    if given.name == "DTEND" and not match[4]:
        # A whole day ends where the next one begins.
        with suppress(ValueError, OverflowError):
            day = (date.fromisoformat(day) - timedelta(days=1)).isoformat()
    return f"{day} {match[4]}:{match[5]}{f' ({zone})' if zone else ''}" if match[4] else day


def _rule(rule: str) -> str:
    """Return how often an event is repeated: `every 2 weeks on Monday until 2026-12-31`."""
    parts = dict(part.split("=", 1) for part in rule.upper().split(";") if "=" in part)
    unit = {"DAILY": "day", "WEEKLY": "week", "MONTHLY": "month", "YEARLY": "year"}.get(parts.get("FREQ", ""))
    if unit is None:
        return rule
    step = parts.get("INTERVAL", "1")
    days = re.findall(r"([+-]?\d{0,3})([A-Z]{2})", parts.get("BYDAY", ""))
    on = ", ".join(f"{f'{number}. ' if number else ''}{_DAYS.get(day, day)}" for number, day in days)
    until, count = _TIME.fullmatch(parts.get("UNTIL", "")), parts.get("COUNT", "")
    return " ".join(
        filter(
            None,
            (
                f"every {unit}" if step == "1" else f"every {step} {unit}s",
                f"on {on}" if on else "",
                f"until {'-'.join(until.groups()[:3])}" if until else "",
                f"{count} times" if count else "",
            ),
        )
    )
