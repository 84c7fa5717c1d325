"""Calendars and contacts are read as programs show them, without what nobody sees."""

import pytest

from tests.extract.readings import read, shape

EVENT = r"""BEGIN:VCALENDAR
X-WR-CALNAME:Home
BEGIN:VTIMEZONE
TZID:Europe/Berlin
BEGIN:STANDARD
RRULE:FREQ=YEARLY
END:STANDARD
END:VTIMEZONE
BEGIN:VEVENT
UID:1@a.example
DTSTART;TZID=Europe/Berlin:20260414T093000
DTEND;TZID=Europe/Berlin:20260414T103000
RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,-1FR;UNTIL=20261231T000000Z
SUMMARY:Budget\, second round
LOCATION:Room Nep
 tun\; 4th floor
DESCRIPTION:Bring the fig
	ures.\nAnd tea.
STATUS:CANCELLED
ORGANIZER;CN="Voss: Clara":mailto:clara@a.example
ATTENDEE;PARTSTAT=NEEDS-ACTION:MAILTO:jan@a.example
X-SECRET:7
BEGIN:VALARM
DESCRIPTION:Reminder
END:VALARM
END:VEVENT
BEGIN:VTODO
DUE;VALUE=DATE:20260501
END:VTODO
END:VCALENDAR
"""
CARDS = r"""BEGIN:VCARD
VERSION:3.0
N:Wisniewska;Zofia;;;
FN:Zofia Wisniewska
ORG:Flowers;Sales
item1.TEL;TYPE=CELL,pref:+48 601
EMAIL;TYPE=INTERNET:z@a.example
ADR;TYPE=WORK:;;Long Street 5\, back;Krakow;;31-147;Poland
BDAY:19410510
PHOTO;ENCODING=b;TYPE=JPEG:/9j/4AAQ
 SkZJRg==
NOTE:Closed on\nSundays
END:VCARD
BEGIN:VCARD
VERSION:2.1
N;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:M=C3=BC=
ller;J=C3=BCrgen
TEL;HOME;VOICE:030 99
END:VCARD
"""


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("name", ["a.ics", "without"])
def test_events_and_tasks_are_read_with_their_times_places_and_people(end: str, name: str) -> None:
    document = read(EVENT.replace("\n", end).encode(), name)
    assert [(words.split("\n"), headings) for kind, words, headings in shape(document) if kind != "heading"] == [
        (
            [
                "Start: 2026-04-14 09:30 (Europe/Berlin)",
                "End: 2026-04-14 10:30 (Europe/Berlin)",
                "Repeats: every 2 weeks on Monday, -1. Friday until 2026-12-31",
                "Location: Room Neptun; 4th floor",
                "Status: cancelled",
                "Organizer: Voss: Clara <clara@a.example>",
                "Attendee: jan@a.example (needs action)",
            ],
            ("Budget, second round",),
        ),
        (["Bring the figures.", "And tea."], ("Budget, second round",)),
        (["Due: 2026-05-01"], ("Task",)),
    ]
    assert document.title == "Home"


@pytest.mark.parametrize("name", ["a.vcf", "without"])
def test_contacts_are_read_with_their_names_numbers_and_addresses(name: str) -> None:
    document = read(CARDS.encode(), name)
    address = "Address (work): Long Street 5, back, Krakow, 31-147, Poland"
    assert [words for _, words, _ in shape(document)] == [
        "Zofia Wisniewska",
        f"Organization: Flowers, Sales\nPhone (cell): +48 601\nE-mail: z@a.example\n{address}\nBirthday: 1941-05-10",
        "Closed on\nSundays",
        "Jürgen Müller",
        "Phone (home): 030 99",
    ]


@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        ("DTSTART:20260510\nDTEND:20260511", "Start: 2026-05-10"),
        ("DTSTART:20260510\nDTEND:20260513", "Start: 2026-05-10\nEnd: 2026-05-12"),
        (
            "DTSTART:20260510T090000Z\nRRULE:FREQ=YEARLY;COUNT=3",
            "Start: 2026-05-10 09:00 (UTC)\nRepeats: every year 3 times",
        ),
        ("DTSTART:soon\nEND:VALARM\nRRULE:?", "Start: soon"),
        ("DTSTART:soon\nRRULE:?\nURL", "Start: soon\nRepeats: ?"),
    ],
)
def test_times_are_dates_of_a_calendar_and_faults_cost_little(lines: str, shown: str) -> None:
    document = read(f"BEGIN:VCALENDAR\nBEGIN:VEVENT\n{lines}\nEND:VEVENT\n".encode(), "a.ics")
    assert [block.text for block in document.blocks[1:]] == [shown]


def test_event_that_is_cut_off_is_read() -> None:
    document = read(b"BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:Tea\nLOCATION:Pier 2\n", "a.ics")
    assert [block.text for block in document.blocks] == ["Tea", "Location: Pier 2"]
