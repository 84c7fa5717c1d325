"""Tests that the stems of real and random words equal those of FTS5."""

import random
import sqlite3
from contextlib import closing

from svc_daemon.core.text.porter import LONGEST, porter_stem
from tests.acceptance.forks import ROOT

ENDINGS = (
    "s ss sses ies es eed ed ing at bl iz y ational tional enci anci izer logi bli alli entli eli ousli ization ation "
    "ator alism iveness fulness ousness aliti iviti biliti icate ative alize iciti ical ful ness al ance ence er ic "
    "able ible ant ement ment ent sion tion ion ou ism ate iti ous ive ize e ll le"
)
SPECIAL = [
    "a",
    "as",
    "ies",
    "sses",
    "yes",
    "sky",
    "syzygy",
    "yyy",
    "ing",
    "eed",
    "ling",
    "x" * LONGEST,
    "s" * (LONGEST + 1),
]


def test_every_stem_equals_that_of_fts5() -> None:
    chance = random.Random(7)
    beginnings = ["".join(chance.choices("aeiouybcdflstwxz", k=chance.randint(0, 6))) for _ in range(20_000)]
    words = {
        begin + chance.choice(ENDINGS.split()) + chance.choice(["", "", "s", "ed", "ing", "ly"]) for begin in beginnings
    }
    for path in [*(ROOT / "docs").rglob("*.md"), ROOT / "LICENSE"]:
        words |= {
            word for word in path.read_text(encoding="utf-8").lower().split() if word.isascii() and word.isalpha()
        }
    tested = sorted({*words, *SPECIAL})
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE VIRTUAL TABLE texts USING fts5(text, tokenize = 'porter unicode61')")
        connection.execute("CREATE VIRTUAL TABLE terms USING fts5vocab(texts, instance)")
        connection.executemany("INSERT INTO texts (rowid, text) VALUES (?, ?)", enumerate(tested))
        expected = dict(connection.execute("SELECT doc, term FROM terms"))
    assert len(tested) > 15_000
    wrong = {word: porter_stem(word) for number, word in enumerate(tested) if porter_stem(word) != expected[number]}
    assert not wrong
