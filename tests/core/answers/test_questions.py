"""Tests what a question asks for and names, and that what is about another thing doesn't answer it."""

import pytest

from svc_daemon.core.answers.extractive_answers import quote_best
from svc_daemon.core.answers.passages import Passage
from tests.core.answers.passages import passage

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

#: A passage, a question, and what the answer begins with.
ANSWERED = [
    # Labels above, before and within paragraphs.
    (passage(TEA, title="tea", sencha=2.0, costs=1.0), "what does sencha tea cost", "It costs €6"),
    (passage(TEA, title="tea", rosella=2.0, keeps=1.0), "how long does rosella tea keep", "It costs €4"),
    (passage(HALLS, title="halls", small=2.0, rent=2.0), "rent of the small hall", "Rent is £250"),
    (passage(BOATS), "What colour is boat 7?", "Painted red."),
    (passage(FLATS), "Is there a lift at Garnet Lane 4?", "No lift"),
    # What a document begins with is about all of it.
    (passage(CLUB, title="club"), "Who was the chair in May 2023?", "chair: Ada Moe"),
    (passage(MAIL, title="mail"), "What does the fence cost according to Pia Lund?", "The fence costs 70"),
    (passage(RESULTS), "Ines Vang iron", "Iron 9 ug/dl"),
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
        # A heading alone is no answer.
        (passage("REPORT 31-8\n\nZinc is low."), "What does report 31-8 say about iron?"),
    ],
)
def test_what_is_about_another_thing_does_not_answer(read: Passage, question: str) -> None:
    found = quote_best(question, question, [read])
    assert (found.pieces, found.is_whole) == ((), False)
