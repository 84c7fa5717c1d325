"""Polarity: whether a text says that something is so, or that it is not.

Two clauses that share their words and differ in one `not` say opposite things, and so do those of which one has
`open` and one has `closed`, or one `before` and one `after`. What has two such turns says the same again: `is not
closed`. The words are English; in a text of another language none of them is found, and nothing is held against it.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from svc_daemon.core.stems import stem_of, stems_of

#: However many of them a clause has, it is turned once.
_NOT = frozenset({"not", "no", "nor", "never", "none", "nobody", "nothing", "nowhere", "neither", "cannot"})
_TURNING_WORDS = (
    "without alone forbid forbidden forbade prohibit ban banned deny refuse reject exclude lack fail decline prevent "
    "unable impossible disallow cancel canceled cancelled discontinue abolish"
)
#: Each of these turns a clause by itself.
_TURNING = frozenset(map(stem_of, _TURNING_WORDS.split()))
#: With these a clause may say `not` in another way, or a little of both: it is not judged by what turns it.
_SOFT_WORDS = "only unless except till until rather instead hardly rarely seldom barely free few little"
_SOFT = frozenset(_SOFT_WORDS.split())
#: What can't both be so. `atmost` and the like are put for phrases.
_OPPOSITES = (
    ("before prior", "after"),
    ("open", "closed shut"),
    ("required mandatory must compulsory obligatory needed necessary", "optional voluntary"),
    ("atleast minimum morethan", "atmost maximum lessthan"),
    ("increase rise rose grow grew raised", "decrease fall fell shrink shrank lowered reduced dropped"),
    ("all every everyone everybody always", "some several sometimes occasionally"),
    ("start begin begins began", "end finish expire"),
    ("enabled", "disabled"),
    ("public", "private secret confidential"),
    ("internal", "external"),
    ("automatic automatically", "manual manually"),
    ("upload", "download"),
    ("higher more", "lower less fewer"),
    ("include", "exclude"),
    ("inside", "outside"),
    ("permanent", "temporary"),
    ("stay remain", "leave left"),
    ("won win", "lost lose"),
)
_SIDES = {
    stem_of(word): frozenset(
        (pair, side)
        for pair, sides in enumerate(_OPPOSITES)
        for side, other in enumerate(sides)
        if stem_of(word) in map(stem_of, other.split())
    )
    for words in _OPPOSITES
    for each in words
    for word in each.split()
}
_NONE: frozenset[tuple[int, int]] = frozenset()
_PHRASES = (
    (re.compile(r"n't\b"), " not"),
    (re.compile(r"\b(?:have|has|need|needs) to\b"), "must"),
    (re.compile(r"\b(?:no|not|nor) (?:more|longer|higher|greater|larger) than\b|\bup to\b|\bat most\b"), "atmost"),
    (re.compile(r"\b(?:not|never|cannot) (?:to )?exceed(?:ing)?\b|\bnot exceeding\b"), "atmost"),
    (re.compile(r"\b(?:no|not) (?:less|fewer|lower|shorter|smaller) than\b|\bat least\b"), "atleast"),
    (re.compile(r"\bmore than\b|\bexceed(?:s|ing)?\b|\b(?:over|above) (?=[\d$€£])"), "morethan "),
    (re.compile(r"\b(?:less|fewer) than\b|\b(?:under|below) (?=[\d$€£])"), "lessthan "),
    (re.compile(r"\bnot (?:only|just|merely)\b|\bno doubt\b|\bwhether or not\b|\bif not\b|\bno matter\b"), " "),
    (re.compile(r"\bno(?:t)? later than\b|\bno\.? (?=\d)|\b(?:after|of|at|in) all\b|\ball of\b"), " "),
)
#: Where a clause ends, if enough stands on both sides.
_BREAK = re.compile(r"[;()–—]|[:,](?=\s)|\b(?:but|while|whereas|although|though|because|since)\b")  # noqa: RUF001
_FEWEST_WORDS = 2
_WORD = re.compile(r"\w+")
#: The part of a claim's words that another clause must have to speak of the same,
_ALIKE = 0.4
#: and of those that the closest one has.
_AS_CLOSE = 0.8
#: `unpaid` is the opposite of `paid`; of a shorter rest that is less sure.
_PREFIX = re.compile(r"(?:un|non|in|im|ir|dis)(?=\w{4})")


@dataclass(frozen=True, slots=True)
class Clause:
    """What stands between two commas, or says one thing."""

    #: Of the words that tell something, but for those that turn it.
    stems: frozenset[str]
    is_turned: bool
    is_soft: bool
    #: Pair and side of each of its words that has an opposite.
    sides: frozenset[tuple[int, int]]


def clauses_of(sentence: str) -> list[Clause]:
    """The clauses of one sentence, in order."""
    text = sentence.lower().replace("’", "'")  # noqa: RUF001
    for pattern, put in _PHRASES:
        text = pattern.sub(put, text)
    return [_clause(part) for part in _parts(text)]


def contradicts(claim: Clause, others: Sequence[Clause]) -> bool:
    """Whether those of the clauses that speak of the same all say the opposite."""
    close = list(_closest(claim, others))
    return bool(close) and all(_differs(claim, other) for other in close)


def _parts(text: str) -> Iterator[str]:
    """The text cut where enough stands on both sides; each character is looked at a few times at most."""
    breaks = list(_BREAK.finditer(text))
    # The further back a break, the more stands behind it.
    enough = bisect_left(breaks, True, key=lambda each: not _says_something(*_heard(text[each.end() :])))
    start = looked = 0
    stems, is_denied = frozenset[str](), False
    for each in breaks[:enough]:
        more, denied = _heard(text[looked : each.start()])
        stems, is_denied, looked = stems | more, is_denied or denied, each.start()
        if _says_something(stems, is_denied):
            yield text[start : each.start()]
            start, stems, is_denied = each.start(), frozenset(), False
    yield text[start:]


def _heard(text: str) -> tuple[frozenset[str], bool]:
    """The stems of a text, and whether it has a `not`."""
    return stems_of(text), not _NOT.isdisjoint(_WORD.findall(text))


def _says_something(stems: frozenset[str], is_denied: bool) -> bool:
    """Whether that is a clause: `cats are not` is one, a word of a list is none."""
    return len(stems) >= _FEWEST_WORDS or (bool(stems) and is_denied)


def _clause(text: str) -> Clause:
    words = _WORD.findall(text)
    stems = stems_of(text)
    turns = _TURNING.intersection(map(stem_of, words))
    return Clause(
        stems=stems - turns,
        is_turned=(len(turns) + (not _NOT.isdisjoint(words))) % 2 == 1,
        is_soft=not _SOFT.isdisjoint(words),
        sides=frozenset[tuple[int, int]]().union(*(_SIDES.get(stem_of(word), ()) for word in words)),
    )


def _closest(claim: Clause, others: Sequence[Clause]) -> Iterator[Clause]:
    """Those that share most with the claim; the fewer of them have a word, the more it tells."""
    clauses_with = Counter(stem for other in others for stem in other.stems)
    shared = [(_shared(claim, other), other) for other in others]
    weighed = [
        (sum(1 / (clauses_with[stem] or 1) for stem in stems), other)
        for stems, other in shared
        if len(stems) >= max(1, _ALIKE * len(claim.stems))
    ]
    most = max((weight for weight, _ in weighed), default=0)
    return (other for weight, other in weighed if weight >= _AS_CLOSE * most)


def _shared(claim: Clause, other: Clause) -> set[str]:
    """The claim's stems that the other has too, or has the opposite of."""
    bare = {_bare(stem) for stem in other.stems}
    opposed = {(pair, 1 - side) for pair, side in other.sides}
    return {
        stem
        for stem in claim.stems
        if stem in other.stems or stem in bare or _bare(stem) in other.stems or _SIDES.get(stem, _NONE) & opposed
    }


def _differs(claim: Clause, other: Clause) -> bool:
    pairs = {pair for pair, _ in claim.sides}
    has_both = any({(pair, 0), (pair, 1)} <= other.sides for pair in pairs)
    if has_both or claim.is_soft or other.is_soft:
        return False
    turns = claim.is_turned + other.is_turned + _is_opposed(claim, other)
    turns += any(_bare(stem) in other.stems for stem in claim.stems - other.stems)
    turns += any(_bare(stem) in claim.stems for stem in other.stems - claim.stems)
    return turns % 2 == 1


def _is_opposed(claim: Clause, other: Clause) -> bool:
    """Whether the one has one side of a pair, and the other the other."""
    return any((pair, 1 - side) in other.sides and (pair, side) not in other.sides for pair, side in claim.sides)


def _bare(stem: str) -> str:
    return _PREFIX.sub("", stem, count=1)
