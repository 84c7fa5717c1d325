"""The first questions that somebody asks: a fresh team with a few documents of a sentence or two."""

from collections.abc import Iterator

import pytest

from tests.api.asking import ask
from tests.api.daemons import Daemon

DOCUMENTS = {
    "lamp.txt": "The lamp is painted turquoise.",
    "ferry.txt": "The ferry to the island leaves at half past six. A ticket for a bicycle costs four euros.",
    "bees.txt": "Nadia keeps the bees behind the orchard. She takes the honey in July.",
    "roof.txt": "A firm from Umbertown repaired the roof last spring.",
    "oven.txt": "The oven door sticks: lift it a little, then pull. Its light has been broken since May.",
    "pottery.txt": "The pottery class has room for nine people. The manual of the kiln was written by Tomas Berg.",
}
#: With a word of the sentence that answers.
ON = [
    ("What colour is the lamp?", "turquoise"),
    ("what is the color of the lamp", "turquoise"),
    ("When does the ferry leave?", "half past six"),
    ("How much is a ticket for a bicycle?", "four euros"),
    ("Where are the bees kept?", "orchard"),
    ("When do we get honey?", "July"),
    ("Who repaired the roof?", "Umbertown"),
    ("How do I open the oven door?", "pull"),
    ("How many people can join the pottery class?", "nine"),
    ("Who wrote the manual of the kiln?", "Tomas Berg"),
]
OFF = [
    "Who won the football match last night?",
    "What is the capital of Mongolia?",
    "How do I change a bicycle tyre in the rain?",
    "How long do I bake bread in the oven?",
    "How many bees are there?",
    "How old is the roof?",
    "Which insurance covers broken windows?",
    "Where can I park my car near the museum?",
    "What does the teacher of the yoga lessons earn?",
    "Does the printer need a new cartridge?",
]


@pytest.fixture(scope="module")
def fresh(shared: Daemon) -> Iterator[Daemon]:
    shared.start()
    for name, text in DOCUMENTS.items():
        shared.add_ready(text.encode(), filename=name)
    yield shared
    shared.stop()


@pytest.mark.parametrize(("question", "said"), ON)
def test_a_question_on_the_few_documents_is_answered(fresh: Daemon, question: str, said: str) -> None:
    answer = ask(fresh, question)
    assert answer["grounded"] is True
    assert any(said in source["quote"] for source in answer["sources"])


@pytest.mark.parametrize("question", OFF)
def test_a_question_that_they_do_not_answer_finds_nothing(fresh: Daemon, question: str) -> None:
    answer = ask(fresh, question)
    assert (answer["grounded"], answer["sources"]) == (False, [])
