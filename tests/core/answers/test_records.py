"""Tests that what names a record, section, option or row keeps its values from answering for another one."""

from dataclasses import replace

import pytest

from svc_daemon.core.answers.extractive_answers import quote_best
from svc_daemon.core.answers.statements import statements_of
from svc_daemon.core.text.words import STOP_WORDS, words_of
from tests.core.answers.passages import passage
from tests.limits import cpu_limit_s

YAML = "dev:\n  host: localhost\n  port: 8080\nprod:\n  host: app.example.org\n  debug: false\n"
LISTED = "- name: alpha\n  cpu: 4\n  os: Debian 12\n- name: beta\n  cpu: 8\n  disk: 2 TB\n"
SECTIONS = "[dev]\nhost = localhost\nport = 8080\n\n[prod]\nhost = app.example.org\ndebug = false\n"
DEFAULTS = "[Journal]\n#Storage=auto\n#LineMax=48K\n#MaxRetentionSec=\n"
CODES = (
    "  * CVE-2024-1111: Parser accepts broken headers\n  * Fix for CVE-2023-9999: password was written to the log\n"
    "  * CVE-2022-3333: Heap overflow in the decoder\n"
)
HELP = (
    "Usage: backup [OPTION]... DIR\n  -n, --dry-run            show what would be done\n"
    "  -k, --keep=NUM           keep NUM old copies\n"
)
WRAPPED = (
    "  -D, --dereference   follow only symlinks that are listed\n                      on the command line\n"
    "  -t, --threshold=SIZE  leave out what is smaller if positive,\n                        or larger if negative\n"
)
LIMITS = "#@student        -       maxlogins       4\n#@faculty        hard    nproc           50\n\n# End of file\n"
PROTOCOLS = "ipv6 | 41 | the protocol of version 6\nospf | 89 | open shortest path first (OSPF)\n"
COMMENTS = (
    '# By default the program uses "passive" transfer where the client\n# opens the connection. If you need\n'
    '# the other way, use "passive = off" for active transfer.\n'
)
DIRECTIVES = "%h     same as %b\n%H     hour (00..23)\n%j     day of year (001..366)\n"
CORNER = "| | Alpha | Beta |\n|---|---|---|\n| RAM | 8 GB | 16 GB |"
RAGGED = "Lamp,49,12,red\nDesk,199,3\nChair,89\nShelf,35,7,blue"
CURRENCIES = "- name: Swiss Franc\n  numeric: '756'\n- name: Codes for testing\n  numeric: '963'\n"
SHORT = "1.1,Buzz,1993,\n1.2,Rex,1993\n1.3,Bo,1995\n11,Ada,2019,2026"
TANKS = "2024-05-05,A,3.5,4.09\n2024-05-05,B,3.7,3.98\n2024-05-01,A,3.4,4.12"
ROOMS = "The main room holds 110 people. The Linden Room holds 28."
EXAMS = "14 May,French,Writing,30,\n20 May,French,Listening,26,Ms Moe\n22 May,Music,Theory,9,Mr Lund"
SPRAYED = "17 April,Mill Piece,Beetlex,2\n8 May,Mill Field,Aphex,3"
MEETING = "Minutes of the 2022 meeting. Minutes of 2021 were approved.\n\nChair: Ada Moe. Fee: 40 euros."
#: Only the first letter of "Comments" is among the words that say what a document is about.
OWNERS = "We met. " * 36 + "In spring, Comments on the lift.\nRoof of building A: 300 euros."
ELIDED = "It is what the c'est means here. Roof of building A: 300 euros."
JOURNAL = "[Journal]\n#RateLimitIntervalSec=30s\n#RateLimitBurst=10000\n#LineMax=48K\n"
RETRIES = (
    "# The program can wait between two tries of what failed; set waitretry to the seconds it may wait\n"
    "# at most, and note that it waits longer each time.\n#waitretry = 10\n\n# How deep to descend.\nreclevel = 5\n"
)
TUNS = (
    "# What is in the cellar.\ntuns:\n  - number: 4\n    yeast: Rosal\n  - number: 9\n    yeast: Quant\n    acid: 3.1\n"
)
MUSEUM = "**Mill house.** April to October: Saturdays 13-16.\n\n**Tower.** November to March: Sundays 11-12."
POLICY = "Bicycles: insured up to 400 euros.\nAny other thing: no."
RECOLTE = "Clos Haut: grenache, récolté le 15 septembre."
SWITCHES = "dev:\n  cache: on\n  debug: all\nprod:\n  cache: off\n  debug: no\n"
PLOTS = "18A;Pruett;clay;;new since Feb\n14A;Moe;clay;2024-06-11;weeds"
GAME = "Loading costs 1 coin per crate. Trading costs 2 coins."
SEASONS = "Season 2024-25: transfers end on 31 January.\n\nSeason 2023-24: transfers end on 28 February."
EDITIONS = "Second edition: the youngest player goes first.\n\nFirst edition: the oldest player goes first."
AIRCRAFT = "Warrior G-BXTW: the hour costs £172.\n\nWarrior G-BXTM: the hour costs £160."
REPORT = "Juno: Feb 2024 mud fever, cleared soon. Apr 2023 colic."
PROBE = "Turmzimmer: der Chor probt am 11.09. um 19 Uhr.\n\nKirche: der Chor probt am 25.09. um 20 Uhr."
BACKUP = "jobs:\n  - {name: elm, hour: 3}\n  - {name: oak, hour: 4}\nlimits:\n  upload_kib: 51000\nhook: dump.sh\n"
NEWS = "The next one is mill 12, in May.\n\nPort to libfoo 52, the latest version of the engine."
NEWER = NEWS.replace("Port", "Ported")
COLUMNS = dict.fromkeys((RAGGED, SHORT), ("name, price, stock, colour",)) | {
    TANKS: ("day, tank, temp_c, fat",),
    EXAMS: ("date, subject, paper, candidates, invigilator",),
    NEWS: ("Mill 11",),
    NEWER: ("Mill 12",),
    PLOTS: ("plot, tenant, soil, last inspection, remark",),
    SPRAYED: ("day, field, product, wind",),
}
#: The titles of texts that another title would tell apart from others.
TITLES = {MEETING: "meeting_2022.md", GAME: "rules_harbour_1st.md"}
#: A text, a question, and the answer; none if another record's value would be one.
CASES = [
    (YAML, "host of dev", "host: localhost [1]"),
    (YAML, "host of prod", "host: app.example.org [1]"),
    (YAML, "port of prod", ""),
    (YAML, "debug in dev", ""),
    (LISTED, "cpu of beta", "cpu: 8 [1]"),
    (LISTED, "os of beta", ""),
    (LISTED, "disk of alpha", ""),
    (SECTIONS, "host of dev", "host = localhost [1]"),
    (SECTIONS, "port of prod", ""),
    (DEFAULTS, "journald LineMax", "LineMax=48K [1]"),
    (DEFAULTS, "MaxRetentionSec", ""),
    (CODES, "What is fixed in CVE-2024-1111?", "CVE-2024-1111: Parser accepts broken headers [1]"),
    (CODES, "What is fixed in CVE-2022-3333?", "CVE-2022-3333: Heap overflow in the decoder [1]"),
    (HELP, "backup -n", "-n, --dry-run show what would be done [1]"),
    (HELP, "what does -k do", "-k, --keep=NUM keep NUM old copies [1]"),
    # What an option does, to the end, and not the next one.
    (WRAPPED, "what does -D do", "-D, --dereference follow only symlinks that are listed on the command line [1]"),
    (WRAPPED, "--threshold", "-t, --threshold=SIZE leave out what is smaller if positive, or larger if negative [1]"),
    (LIMITS, "maxlogins of @faculty", ""),
    (
        COMMENTS,
        "what to use for active transfer",
        'If you need the other way, use "passive = off" for active transfer. [1]',
    ),
    # An abbreviation that one row has is that row's thing.
    (PROTOCOLS, "the protocol OSPF", "ospf | 89 | open shortest path first (OSPF) [1]"),
    (DIRECTIVES, "What is %H in date?", "%H hour (00..23) [1]"),
    (DIRECTIVES, "date %J", ""),
    (CORNER, "RAM of Beta", "RAM | 8 GB | 16 GB (| Alpha | Beta) [1]"),
    (RAGGED, "price of Desk", "Desk,199,3 (name | price | stock | colour) [1]"),
    (RAGGED, "colour of Shelf", "Shelf,35,7,blue (name | price | stock | colour) [1]"),
    (RAGGED, "colour of Desk", ""),
    (SHORT, "colour of Ada", "11,Ada,2019,2026 (name | price | stock | colour) [1]"),
    # Of the records, only one has the most words of the question.
    (CURRENCIES, "numeric code of the swiss franc", "numeric: '756' [1]"),
    (RAGGED, "stock of Chair", ""),
    (TANKS, "What was the fat in tank A on 5 May?", "2024-05-05,A,3.5,4.09 (day | tank | temp_c | fat) [1]"),
    # The unit of another column is no tank.
    (TANKS, "What was the fat in tank C on 5 May?", ""),
    # What is asked for is empty in the row that is meant.
    (EXAMS, "who invigilates the French writing exam", ""),
    (
        EXAMS,
        "who invigilates the French listening exam",
        "20 May,French,Listening,26,Ms Moe (date | subject | paper | candidates | invigilator) [1]",
    ),
    (PLOTS, "date of the last inspection of plot 18A", ""),
    (
        PLOTS,
        "date of the last inspection of plot 14A",
        "14A;Moe;clay;2024-06-11;weeds (plot | tenant | soil | last inspection | remark) [1]",
    ),
    (SPRAYED, "When was Beetlex sprayed on Mill Field?", ""),
    (
        SPRAYED,
        "When was Beetlex sprayed on Mill Piece?",
        "17 April,Mill Piece,Beetlex,2 (day | field | product | wind) [1]",
    ),
    (JOURNAL, "journald rate limit burst", "RateLimitBurst=10000 [1]"),
    (RETRIES, "waitretry in backup", "waitretry = 10 [1]"),
    (RETRIES, "backup reclevel default", "reclevel = 5 [1]"),
    # What is below another version's heading is another version's.
    (NEWS, "mill 12 libfoo version", ""),
    (NEWER, "mill 12 libfoo version", "Ported to libfoo 52, the latest version of the engine. [1]"),
    # A value may be one of the words that most texts have.
    (SWITCHES, "cache of prod", "cache: off [1]"),
    (SWITCHES, "debug in dev", "debug: all [1]"),
    # A season, an edition, a month and a day, however they are written.
    (SEASONS, "when do transfers end in season 24/25", "Season 2024-25: transfers end on 31 January. [1]"),
    (SEASONS, "when do transfers end in season 22/23", ""),
    (EDITIONS, "who goes first in the 2nd ed", "Second edition: the youngest player goes first. [1]"),
    (EDITIONS, "who goes first in the 3rd edition", ""),
    (AIRCRAFT, "What does an hour in the Warrior G-BXTW cost?", "Warrior G-BXTW: the hour costs £172. [1]"),
    (AIRCRAFT, "What does an hour in the Warrior G-BXTZ cost?", ""),
    (REPORT, "What did Juno have in February 2024?", "Juno: Feb 2024 mud fever, cleared soon. [1]"),
    (PROBE, "Wo probt der Chor am 25. September?", "Kirche: der Chor probt am 25.09. um 20 Uhr. [1]"),
    (PROBE, "Wo probt der Chor am 18. September?", ""),
    # What stands below a list, and not in it, is no part of its last entry.
    (BACKUP, "upload limit of the backup in KiB", "upload_kib: 51000 [1]"),
    # What a list is called names its entries.
    (TUNS, "yeast of tun 9", "yeast: Quant [1]"),
    (TUNS, "acid of tun 4", ""),
    # A month is within a range of months.
    (MUSEUM, "When is the Mill House open in July?", "April to October: Saturdays 13-16. [1]"),
    (MUSEUM, "When is the Mill House open in January?", ""),
    # These name nothing.
    (POLICY, "For how much are bicycles insured when I'm out?", "Bicycles: insured up to 400 euros. [1]"),
    (RECOLTE, "Quel jour le grenache du Clos Haut a-t-il été récolté ?", f"{RECOLTE} [1]"),
    # Its title has another year.
    (MEETING, "who was the chair of the meeting in 2021", ""),
    (MEETING, "who was the chair of the meeting in 2022", "Chair: Ada Moe. [1]"),
    (GAME, "What does loading cost in the second edition of Harbour?", ""),
    (GAME, "What does loading cost in the first edition of Harbour?", "Loading costs 1 coin per crate. [1]"),
    (OWNERS, "cost of the roof of building C", ""),
    (OWNERS, "cost of the roof of building A", "Roof of building A: 300 euros. [1]"),
    (ELIDED, "cost of the roof of building C", ""),
    (ROOMS, "How many people does the Linden Room hold?", "The Linden Room holds 28. [1]"),
]


@pytest.mark.parametrize(("text", "question", "answer"), CASES)
def test_only_the_record_that_is_asked_about_answers(text: str, question: str, answer: str) -> None:
    headings = COLUMNS.get(text, ())
    title = TITLES.get(text, "date, backup, journald")
    words = [word for word in words_of(question) if word not in STOP_WORDS and word in f"{text} {title}".lower()]
    read = replace(passage(text, title=title, headings=headings), weights=dict.fromkeys(words, 2.0))
    found = quote_best(question, question, [read])
    assert "".join(piece.text for piece in found.pieces if found.is_whole) == answer


@pytest.mark.parametrize(
    "line", ["-a" + " " * 20_000, "-a" + "\t" * 20_000, "-a" + "  -b" * 5000, "-a" + " b" * 10_000]
)
def test_the_processor_time_grows_linearly_with_the_line_of_an_option(line: str) -> None:
    with cpu_limit_s(1):
        quote_best("what does -a do", "what does -a do", [passage(line)])


@pytest.mark.parametrize("lead", ["a=Ann\n" + "a=b\n" * 5000, "museum: a\n" + "\n" * 20_000 + "x museum"])
def test_the_processor_time_grows_linearly_with_the_text_before_a_passage(lead: str) -> None:
    with cpu_limit_s(1):
        question = "When does the museum open on Sunday?"
        quote_best(question, question, [replace(passage("| tea | 10 |\n| a | b |\n"), lead=lead)])


def test_words_of_one_root_are_not_named_as_missing() -> None:
    read = replace(passage(EXAMS, headings=COLUMNS[EXAMS]), weights=dict.fromkeys(("french", "listening", "exam"), 2.0))
    for question, unmatched in {
        "who invigilates the French listening exam": (),
        "who regrobbled the French listening exam": ("regrobbled",),
    }.items():
        found = quote_best(question, question, [read])
        assert (found.unmatched, bool(found.pieces)) == (unmatched, True), question


def test_rules_that_replace_those_of_another_year_are_not_of_that_year() -> None:
    heads = ("Rules of May 2024, which replace those of 2021",)
    new = passage("Water charge is £12 per plot.", title="rules_2024.md", headings=heads)
    read = replace(new, weights=dict.fromkeys(("water", "charge", "plot", "rules"), 2.0))
    answered = [
        quote_best(question, question, [read]).is_whole
        for question in ("water charge per plot, 2021 rules", "water charge per plot, 2024 rules")
    ]
    assert answered == [False, True]


def test_a_year_beside_what_a_document_is_called_is_not_the_year_in_a_row_of_another() -> None:
    lists = [
        passage(f"Stock list {year}\n\nvariety | seed year | shelf\n{row}", title=f"seeds_{year}.tsv")
        for year, row in ((2022, "Green Kettle | 2021 | C-50"), (2021, "Green Kettle | 2019 | C-91"))
    ]
    read = [replace(each, weights=dict.fromkeys(("shelf", "green", "kettle", "list"), 2.0)) for each in lists]
    question = "shelf of Green Kettle, 2021 list"
    assert "C-91" in "".join(piece.text for piece in quote_best(question, question, read).pieces)


def test_the_line_above_what_a_mail_quotes_answers_only_who_wrote_it() -> None:
    mail = passage("On Wed, 8 Nov 2023, Ada Penrose wrote:\n> The harp needs a new string.", title="notes")
    read = replace(mail, weights=dict.fromkeys(("ada", "penrose", "harp", "wrote"), 2.0))
    for question, is_quoted in (("Who made Ada Penrose's harp?", False), ("When did Ada Penrose write?", True)):
        said = "".join(piece.text for piece in quote_best(question, question, [read]).pieces)
        assert ("wrote" in said) == is_quoted, question


def test_each_comment_at_the_top_of_settings_is_a_statement_unless_the_next_line_goes_on_with_it() -> None:
    notes = "; Potters, firing schedule\n; Kiln: The Dragon (propane)\n; last edited by Lowri on the\n; third of May"
    texts = [each.text for each in statements_of(passage(f"{notes}\n\n[kiln]\nburners = 2"))]
    assert texts[:3] == [
        "; Potters, firing schedule",
        "; Kiln: The Dragon (propane)",
        "; last edited by Lowri on the\n; third of May",
    ]


PEOPLE = (
    "name | phone | IBAN\n"
    "Meier | +49 30 1234567 | DE89 3704 0044 0532 0130 00\n"
    "Smith | 020 7946 0958 | GB29NWBK60161331926819"
)


@pytest.mark.parametrize(
    ("question", "answer", "unmatched"),
    [
        ("Whose phone is 0301234567?", "Meier", ()),
        ("Who has the phone 0049 30 123-4567?", "Meier", ()),
        ("whose phone is +44 20 7946 0958", "Smith", ()),
        ("Whose IBAN is DE89370400440532013000?", "Meier", ()),
        ("who has the IBAN GB29 NWBK 6016 1331 9268 19", "Smith", ()),
        ("whose phone is 020 7946 0959", "", ("020 7946 0959",)),
        ("Whose IBAN is DE89370400440532013001?", "", ("DE89370400440532013001",)),
    ],
)
def test_the_owner_of_a_number_is_found_however_it_is_written(question: str, answer: str, unmatched: object) -> None:
    words = [word for word in words_of(question) if word in PEOPLE.lower()]
    read = replace(passage(PEOPLE, title="people"), weights=dict.fromkeys(words, 2.0))
    found = quote_best(question, question, [read])
    assert ("".join(piece.text for piece in found.pieces)[: len("Meier")], found.unmatched) == (answer, unmatched)
