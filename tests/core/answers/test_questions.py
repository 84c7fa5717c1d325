"""Tests what a question asks for and names, and that what is about another thing doesn't answer it."""

import pytest

from svc_daemon.core.answers.candidates import Asked
from svc_daemon.core.answers.extractive_answers import quote_best
from svc_daemon.core.answers.likenesses import forms_in
from svc_daemon.core.answers.passages import Passage
from svc_daemon.core.answers.questions import MOST_NAMED, measure_of
from svc_daemon.core.answers.readings import Reading
from svc_daemon.core.text.words import stem_of
from tests.core.answers.passages import passage
from tests.limits import cpu_limit_s

TEA = (
    "Rosella tea\nServe it cold. It costs €4 and keeps 9 days.\n\nSencha tea\nServe hot. It costs €6 and keeps a year."
)
HALLS = "Great Hall. Seats 200 guests. Rent is £900 a day.\n\nSmall Hall. Seats 40 guests. Rent is £250 a day."
BOATS = "**Boat 4 (Tern).** Painted green. Built for 12.\n\n**Boat 7 (Skua).** Painted red. Built for 30."
FLATS = "Garnet Lane 4: two floors. No lift, but a yard.\n\nGarnet Lane 6: one floor. A lift to the roof."
CLUB = "date: 2023-05-09\nchair: Ada Moe\nnotes: Per Lund\n\nThe fence was painted. All agreed on the colour."
MAIL = "From: Pia Lund\nTo: Ada Moe\nDate: Tue, 9 May 2023\n\nThe fence costs 70 euros. Odd Moe will paint it in June."
LOG = (
    "2023-05-09 01:00:00 INFO  copy begun  disk=north\n2023-05-09 01:20:00 ERROR copy failed disk=south\n"
    "2023-05-09 02:00:00 WARN  heat 61C  disk=west"
)
RESULTS = (
    "REPORT 31-7\nName: Vang, Ines     Born: 2.3.1990\nSeen by: Dr Moe     Taken: 8 May 2023\n\n"
    "Sodium     141 mmol/l   (136-145)\nIron       9 ug/dl     (10-30)   LOW\nZinc       14 ug/dl    (11-18)\n\n"
    "Comment: Iron is low."
)
NODES = "name: gw-ber-main\nversion: 3.1\n\nname: gw-ber-spare\nversion: 3.4"
LEAFLET = passage(
    "Cold feet are common. Keep below 20 °C. Over 80, ask first. Not below the age of 14.", title="Fenolin 5 mg"
)
PAINTS = passage(
    "Tovar paint white | 9.5\nTovar paint black | 11.5\nTovar primer | 8.5", headings=("North", "Article, Price (€)")
)
BUSES = passage(
    "7,Mon-Fri,Quay,06:10\n7,Saturday,Quay,07:30\n7,Saturday,Mill,07:40", headings=("Route, Days, Stop, First bus",)
)
LOCKS = passage("The lock of the first door is 55, of the second door 66.", lock=2.0, door=2.0)
CHANGES = passage("- Added the Welsh translation.", headings=("Trellis", "2.4.0 \u2013 2022-01-09"))

FEES = passage("Saver Student | 3.00\nSaver | 2.00", headings=("Accounts", "Account, Fee (£)"))
GATES = passage("GT7 and GT7B open inwards. GT7-S opens outwards.", headings=("GT7, GT7B, GT7-S: gates",))
PROBES = passage(
    "- `span` \u2013 how long a probe lasts. Default: `3s`.\n- `span_late` \u2013 the same after noon. Default: `9s`.",
    title="probe-options-v4.md",
)
CLUB_FEE = "Der Beitrag für Erwachsene im alten Kegelclub Nordend beträgt 48 Euro."
MOTOR = passage("Drum speed\n: 40 \u2013 900 rpm\n\nDrum motor\n: 2.2 kW", title="Mill 3", headings=("Mill 3",))
HALL = passage("Main hall, 2 Moss Road\n\nHorn lessons: 8.30 to 11.00 daily. A pupil may bring a guest.", title="Arvo")
TERMS = passage("Kredit: 15,75 % im Jahr.", title="Konto 7")
TAXES = passage("Late filing costs 40.\n\nFiling deadline: 15 May 2025.", headings=("Tax year 2024",))
STUDY = passage("**Study 4: the old bridge**\n\nBought in Rome by Li. Signed at the back. Lent to Bonn.", title="Art")

LAMPS = '{\n  "lamps": [\n    {"name": "Kvarta 5", "lumens": 470},\n    {"name": "Kvarta 8", "lumens": 806}\n  ]\n}'
INTAKE = "KENNEL  -  INTAKE FORM\n=====\nAnimal's name:   Juno\nOwner:           Ada Moe\nAfraid of:       thunder"
CHECKS = "Item            Result     Remark\n-----\nForks           bad        35 mm\nChains          ok         worn"
CLAIM = "Dear Mr Szabo,\n\nThe damage was caused by a burst hose. We pay 410 euros."
SPAYING = passage(
    "Job | Weight | Price\n--- | --- | ---\nSpaying | up to 20 kg | £240\nSpaying | over 20 kg | £310", title="vet"
)
TICKETS = passage(
    "HD-31,Moe,printer,25\nHD-32,Lund,screen,\nHD-33,Berg,printer,40\nHD-35,Holt,lamp,n/a",
    headings=("Ticket, Who, Fault, Minutes",),
)
TRACTORS = passage("Oil of Fendrik 312: May 2024.", title="Fendrik 309")
FIRMS = passage(
    '{"name": "Helm AG", "mail": "a@helm.example", "days": 14, "least": 400, "contact": null}', title="firms"
)
OTTO = passage("Otto (patient no. 19933) goes home after his operation.", headings=("Letter, 19 June 2024",))
SHELVES = passage("Rung, 3 boards: carries 25 kg.\n\nRung, 5 boards: carries 20 kg.", title="Rung shelf")
SOUP = passage("salt | 90 g\ncumin | 45 g\nSweat the onions for 10 minutes, add the cumin.", title="Card 31")
ERRORS = passage("E04\nThe lid is open.\n\nE40\nThe fan is blocked.", title="errors of the TR-60")
MACHINES = passage("Die Geräte bleiben fünf Jahre lang dort. Sie kosten 900 Euro.", title="Werkstatt Lindenau")
LIGHTS = passage("Light: no more than 120 lux. Raking light was used.", title="Loan of the Concordia")
PARCELS = passage(
    "up to 2 kg | 4.90\nover 2 kg to 5 kg | 6.90\nover 5 kg to 10 kg | 9.90\nover 10 kg | 19.90",
    headings=("Parcel, Price (€)",),
)
TABLETS = passage("2-5 kg | 1\n5.1-25 kg | 3\nmore than 25 kg | 4", headings=("Dog, Tablets a day",), title="Calmex")
STAFF = passage(
    'Ada Berg,Buyer,+47 22 55 01 10\n"Moe, Lars",Driver,+47 22 55 01 11\nInes Vang,Clerk,',
    headings=("Name, Role, Phone",),
)
USERS = passage('{"name": "mira", "phone": null}\n{"name": "jon", "phone": "555-0142"}', mira=2.0, phone=2.0)
BANK = passage("IBAN: GB33 BUKB 2020 1555 5555 55. Account of the club: 31 members.", title="club")
LEASE = passage("The rent is £900, due on the 1st of each month. The lease ends on 31 May 2026.", rent=2.0, due=2.0)
LEAVE = passage("Ada Berg | asked\nPer Lund | 9 days", headings=("Leave", "Name, Left"), title="leave")
RELEASES = passage("Release 2.1 (May 2022): needs Java 11.\n\nRelease 2.10 (June 2023): needs Java 17.", title="relayd")
PRICES = passage("Up to 10 kg | 9.90\nup to 20 kg | 14.90", headings=("Parcels", "Weight, Price"), title="parcels")
SETTINGS = passage(
    "TIMEOUT:\n  default: 30\n  unit: s\n\nCACHE:\n  default: 512\n  unit: MB", title="settings", default=2.0, cache=2.0
)
KEEPERS = passage(
    "Machine | Keeper\nLathe | Ines\nPress | \nSaw | —", title="tools", keeper=2.0, press=1.0, saw=1.0, lathe=1.0
)
COUNTRIES = passage("FR,France\nPL,Poland", headings=("code, country",), title="countries")
SEVERITIES = passage("E101:\n  severity: high\n\nE104:\n  severity: high", title="errors")
OPTIONS = passage(
    "  -q    Print nothing but errors.\n\n  -Q    Put each name in quotes.\n\n"
    "-v, --invert-match\n        Select the other lines.\n\n-V, --version\n        Print the number.\n",
    title="tool",
)
RETRIES = passage(
    "See also --retry-delay.\n--retry <n>\nTry so often if it fails.\n\nSee also --retry.\n--retry-delay <s>\n"
    "Sleep as long before each.\n\n-maxdepth levels\nDescend so deep.",
    title="tool",
)
EXITS = passage(
    "11 | a safety stop\n12 | cancelled\n\n`SVC_LIMIT_TAGS` | most tags | 20\n`SVC_LIMIT_KEYS` | most keys | 50",
    headings=("Exit codes",),
    title="reference",
)
#: A passage, a question, and what the answer begins with.
ANSWERED = [
    # A code that only names something, the subject of a row in code's type, and a date without a verb.
    (EXITS, "what does exit code 11 mean", "11 | a safety stop"),
    (EXITS, "what is SVC_LIMIT_TAGS", "`SVC_LIMIT_TAGS` | most tags"),
    (
        passage("Invoice INV-2291\n\nDate: 14 March 2026\nDue: 30 days net"),
        "When was INV-2291 issued?",
        "Date: 14 March",
    ),
    # What is a code without digits; the row, or the record, of a plain word in capitals.
    (COUNTRIES, "What is the code of Poland?", "PL,Poland"),
    (SETTINGS, "What is the default of CACHE?", "default: 512 [1]"),
    (KEEPERS, "who is the keeper of the lathe", "Lathe | Ines"),
    (
        passage("Basic | 205 EUR\nBest | 95 EUR", headings=("Plan, Excess",)),
        "How high is the excess of Best?",
        "Best | 95",
    ),
    (PRICES, "price of a parcel over 10 kg", "up to 20 kg | 14.90"),
    # The same words said of another thing support nothing.
    (SEVERITIES, "severity of E104", "severity: high [1]"),
    # Options by their case, with what they are called above.
    (OPTIONS, "what does -Q do", "-Q Put each name in quotes. [1]"),
    (OPTIONS, "what does -v do", "Select the other lines. (-v, --invert-match) [1]"),
    (OPTIONS, "what does --version do", "Print the number. (-V, --version) [1]"),
    (RETRIES, "what does --retry-delay do", "Sleep as long before each. (--retry-delay <s>) [1]"),
    (RETRIES, "what does -maxdepth do", "Descend so deep. (-maxdepth levels) [1]"),
    # The row of a range with units at both ends, and of which an end is no part.
    (PARCELS, "price of an 8 kg parcel", "over 5 kg to 10 kg | 9.90"),
    (PARCELS, "price of a 2 kg parcel", "up to 2 kg | 4.90"),
    (TABLETS, "How many tablets for a dog of 3 kg?", "2-5 kg | 1"),
    # A comma in quotes parts no cells.
    (STAFF, "What is Lars Moe's phone number?", '"Moe, Lars",Driver,+47 22 55 01 11 (Name | Role'),
    # Numbers of accounts have letters, and a day may be of each month.
    (BANK, "What is the IBAN?", "IBAN: GB33"),
    # A short number is a phone's if its label says so.
    (passage("Phone of the mill: 4471\nCode of the mill: 55120", mill=2.0), "phone of the mill", "Phone of the mill"),
    (LEASE, "When is the rent due?", "The rent is £900"),
    # An amount in a range, and a number in words.
    (SPAYING, "What does spaying cost for a dog of 27 kg?", "Spaying | over 20 kg | £310"),
    (SHELVES, "How much does the five-board Rung shelf carry?", "Rung, 5 boards: carries 20 kg."),
    # A number of what is counted, in the cell beside it too.
    (SOUP, "How much cumin is in card 31?", "cumin | 45 g"),
    (TICKETS, "How many minutes were spent on HD-33?", "HD-33,Berg,printer,40"),
    # Of near-twins in one document, the line about the one that is asked about.
    (RELEASES, "Which Java does release 2.10 need?", "Release 2.10 (June 2023): needs Java 17."),
    # What a line below a code says is what the code means.
    (ERRORS, "What does E40 mean on the TR-60?", "The fan is blocked."),
    # What comes before the question isn't another one.
    (LIGHTS, "If the Concordia is lent, how bright may the light be at most?", "Light: no more than 120 lux."),
    # Numbers and units of other languages.
    (MACHINES, "How long does Lindenau keep the machines?", "Die Geräte bleiben fünf Jahre lang dort."),
    # Labels above, before and within paragraphs.
    (passage(TEA, title="tea", sencha=2.0, costs=1.0), "what does sencha tea cost", "It costs €6"),
    (passage(HALLS, title="halls", small=2.0, rent=2.0), "rent of the small hall", "Rent is £250"),
    (passage(BOATS), "What colour is boat 7?", "Painted red."),
    (passage(FLATS), "Is there a lift at Garnet Lane 4?", "No lift"),
    # What a document begins with is about all of it.
    (passage(CLUB, title="club"), "Who was the chair in May 2023?", "chair: Ada Moe"),
    (passage(MAIL, title="mail"), "What does the fence cost according to Pia Lund?", "The fence costs 70"),
    (passage(RESULTS), "How high was the iron of Ines Vang?", "Iron 9 ug/dl"),
    (passage(RESULTS), "What was the sodium of Ines Vang in May?", "Sodium 141"),
    (passage(NODES), "version of gw-ber-spare", "version: 3.4"),
    # Each entry of a log is one statement, and the one before it is no heading.
    (passage(LOG), "which copy failed on 9 May 2023", "2023-05-09 01:20:00 ERROR copy failed disk=south [1]"),
    # What repeats a question for yes or no says yes.
    (
        passage("The lamp is turquoise. It is made of brass.", lamp=2.0, turquoise=2.0),
        "Is the lamp turquoise?",
        "The lamp is",
    ),
    (
        passage("The lamp is turquoise. It is made of brass.", lamp=2.0, brass=2.0),
        "Is the lamp made of brass?",
        "It is made",
    ),
    # The kind of amount that is asked for.
    (LEAFLET, "Up to what temperature can Fenolin be kept?", "Keep below 20 °C."),
    (LEAFLET, "From what age may one take Fenolin 5mg?", "Not below the age of 14."),
    (LEAFLET, "fenolin 5 mg minimum age", "Not below the age of 14."),
    # The row, and not its siblings.
    (PAINTS, "price of tovar paint black", "Tovar paint black | 11.5"),
    (BUSES, "first bus on route 7 from Quay on Tuesday", "7,Mon-Fri,Quay,06:10"),
    (BUSES, "bus 7 mill saturday", "7,Saturday,Mill,07:40"),
    (LOCKS, "lock of the second door", "The lock of"),
    # A longer name is another thing, and so is what begins with a twin's code.
    (FEES, "fee of the Saver account", "Saver | 2.00"),
    (GATES, "which way does the GT7-S open", "GT7-S opens"),
    # What a list's item begins with names the rest of it, and a definition heads nothing.
    (PROBES, "default of span_late in probe 4", "Default: `9s`."),
    (MOTOR, "drum motor power of Mill 3", "2.2 kW"),
    # "May" is a month only beside a number or after "in".
    (HALL, "visiting hours of Arvo's horn lessons", "Horn lessons: 8.30"),
    # Words that questions in other languages have anyway don't count.
    (TERMS, "Wie hoch ist der Zins für Kredit auf Konto 7?", "Kredit: 15,75 %"),
    # The heading's year is that of the question.
    (TAXES, "By what date must I file for tax year 2024?", "Filing deadline"),
    # Objects of JSON, and forms and tables below a line that rules off.
    (passage(LAMPS), "How many lumens does the Kvarta 8 have?", '{"name": "Kvarta 8", "lumens": 806}'),
    (passage(INTAKE), "What is Juno afraid of?", "Afraid of: thunder"),
    (passage(CHECKS, title="truck-7"), "What is the remark on the forks of truck 7?", "Forks bad 35 mm (Item | Result"),
    # What a document begins with says whom it is about. Codes may have a genitive, and names a plural.
    (passage(CLAIM), "What caused the damage of Mr Szabo?", "The damage was caused"),
    (passage("WTG-09: the blade has a crack."), "What is wrong with WTG-09's blade?", "WTG-09: the blade"),
    (passage("Loans: we lend DVDs for 3 weeks."), "For how many weeks do we lend a DVD?", "Loans: we lend DVDs"),
    # The heading says in which version, and when.
    (CHANGES, "Which version added the Welsh translation?", "Added the Welsh translation. (2.4.0 \u2013 2022-01-09)"),
]


@pytest.mark.parametrize(("read", "question", "answer"), ANSWERED)
def test_the_statement_about_what_is_asked_answers(read: Passage, question: str, answer: str) -> None:
    found = quote_best(question, question, [read])
    assert "".join(piece.text for piece in found.pieces).startswith(answer)


@pytest.mark.parametrize(
    ("read", "question"),
    [
        (passage(NODES), "version of gw-ber-lab"),
        (passage(LOG), "disk of the copy in /vol/east"),
        (passage(BOATS), "What colour is boat 5?"),
        (passage(RESULTS), "What was Ines Vang's Iron in July 2023?"),
        (PAINTS, "price of tovar paint blue"),
        (PAINTS, "price of tovar paint black in the South region"),
        (BUSES, "first bus 7 mill sunday"),
        (LOCKS, "lock of the third door"),
        (passage("Order code KE-20.", headings=("Kestrel 20",)), "order code of the kestrel 20 ultra"),
        (passage("The roof of Block C costs £900."), "What does the roof of Block D cost?"),
        (passage("Stir the rice.", headings=("Ada's soup",)), "How much salt goes into Ada's soup?"),
        (passage("Saver Student: a fee of £3.\n\nSaver: sent by post.", title="fees"), "fee of the Saver account"),
        (passage("Rain in June 2024: 90 mm."), "How much rain fell in May 2024?"),
        (passage("Highest in June: 21 °C.", title="Lower Fell"), "Middle Fell highest in June"),
        (passage("Rates | 1 % | 2 % (Basic HA | Trade)", title="rates"), "rate of the Trade HA plan"),
        # It lacks the kind of amount that is asked for, and a year is none.
        (passage("Found in 1931.", headings=("Brass bell 12",)), "How heavy is the brass bell 12?"),
        (passage("More than 5,000 may apply.", headings=("Call 31",)), "e-mail address for call 31"),
        (passage("The release team writes each week.", release=2.0, team=2.0), "release-team email"),
        # Each sentence below the heading answers as little as the others.
        (STUDY, "mood of the old bridge in study 4"),
        # What a cat costs is no weight.
        (passage("Tilda | £14.50\nMog | £13.00", headings=("cat, night",), title="cats"), "How much does Tilda weigh?"),
        # An empty cell, and an empty value.
        (TICKETS, "How many minutes were spent on HD-32?"),
        (TICKETS, "How many minutes were spent on HD-35?"),
        (KEEPERS, "who is the keeper of the press"),
        (KEEPERS, "who is the keeper of the saw"),
        # "Up to 20 kg" says nothing of what is more, and the heading of a column no amount.
        (PRICES, "price of a parcel heavier than 20 kg"),
        (passage("Item Qty Price Total", title="invoice 2292"), "What is the total of invoice 2292?"),
        (OPTIONS, "what does -x do"),
        (FIRMS, "Who is the contact at Helm AG?"),
        # What is empty for one isn't another's, and for the address of mail nothing else stands.
        (STAFF, "What is Ines Vang's phone number?"),
        (USERS, "phone number of mira"),
        (passage("Club phone: (020) 5550 1234.", club=2.0), "email address of the club"),
        # No row has the code; another row has the name, which the title has, too; and another number of the same kind.
        (TICKETS, "What was the fault of HD-34?"),
        (LEAVE, "How many days of leave has Ada Berg left?"),
        (TRACTORS, "When did the Fendrik 309 get oil?"),
        # Numbers that name something are no amount, and no number is a phone number.
        (OTTO, "How much did Otto weigh when he went home?"),
        (FIRMS, "phone number of Helm AG"),
        (
            passage("(3) The yard behind Moss Hall is a free-running area.", title="by-law"),
            "When does Moss Hall close?",
        ),
        # A question answers none.
        (passage("Is there a minimum order at Layer Cake?", title="faq"), "What is the minimum order at Layer Cake?"),
        # A heading alone is no answer.
        (passage("REPORT 31-8\n\nZinc is low."), "What does report 31-8 say about iron?"),
    ],
)
def test_what_is_about_another_thing_does_not_answer(read: Passage, question: str) -> None:
    found = quote_best(question, question, [read])
    assert (found.pieces, found.is_whole) == ((), False)


@pytest.mark.parametrize(("question", "missing"), [("駐車場の料金", ()), ("図書館の料金", ("図書館",))])
def test_words_without_spaces_between_are_found_within_others(question: str, missing: tuple[str, ...]) -> None:
    read = passage("駐車場の料金は一時間三百円です。", title="park")
    assert quote_best(question, question, [read]).unmatched == missing


def test_only_so_many_things_of_a_pasted_log_are_looked_for() -> None:
    pasted = " ".join(f"E{number}" for number in range(900))
    assert len(Asked(pasted, pasted, [ERRORS]).needs) == MOST_NAMED
    assert quote_best(pasted, pasted, [ERRORS]).pieces == ()


@pytest.mark.parametrize("piece", ["a", "1", "1.", "-a ", "A ", "%a ", "# a b c d e f\n", "from what age ", "“a ”"])
def test_the_processor_time_grows_linearly_with_the_question(piece: str) -> None:
    question = piece * (4000 // len(piece))
    with cpu_limit_s(3):
        quote_best(question, question, [ERRORS, passage(question)])


@pytest.mark.parametrize(
    ("text", "has_date"),
    [("jan@example.org", False), ("Jan Kowalski comes.", False), ("5 Jan", True), ("Jan 2025", True), ("in Jan", True)],
)
def test_jan_is_a_month_only_where_a_date_is(text: str, has_date: bool) -> None:
    measure = measure_of("when is the review?")
    assert measure is not None
    assert measure.share_in(Reading(text), Reading("")) == float(has_date)


@pytest.mark.parametrize(
    ("question", "text", "answered"),
    [
        ("Wann holt man Kinder der Igelgruppe ab?", "Kinder der Igelgruppe holt man bis 16:15 Uhr.", True),
        ("Wann holt man Kinder der Fuchsgruppe ab?", "Kinder der Igelgruppe holt man bis 16:15 Uhr.", False),
        ("Wie hoch ist der Jahresbeitrag für Erwachsene im alten Kegelclub Nordend?", CLUB_FEE, True),
        ("Wie hoch ist der Mietzins für Erwachsene im alten Kegelclub Nordend?", CLUB_FEE, False),
    ],
)
def test_a_german_question_about_a_noun_that_is_nowhere_has_no_answer(question: str, text: str, answered: bool) -> None:
    assert bool(quote_best(question, question, [passage(text)]).pieces) is answered


def test_other_forms_and_compounds_of_a_word_are_found_in_its_language() -> None:
    found = {stem_of("jahresbeitrag"), stem_of("beiträge")}
    assert forms_in(["beitrag"], ["Jahresbeitrag und Beiträge"], "de") == {stem_of("beitrag"): found}
    assert forms_in(["beitrag"], ["Jahresbeitrag"], "fr") == {stem_of("beitrag"): frozenset()}
