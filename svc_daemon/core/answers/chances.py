"""Chances: how likely each statement that has what a question names is its answer.

A statement about the right thing may still answer another question: the date of filing for that of renewal. So each has
a score from a few features (`WEIGHTS`), and saying nothing has one as well. Their shares of the sum of the exponentials
of all are their chances: of two that are alike, none has more than a half. The weights were fitted, as in a logistic
regression, to the questions of the third to sixth sets in `docs/explanation/grounding.md` and a quarter of the first,
named and second.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence

from svc_daemon.core.answers.candidates import Asked, Scored
from svc_daemon.core.answers.likenesses import likes_of
from svc_daemon.core.answers.passages import chance_of
from svc_daemon.core.answers.quantities import UNITS
from svc_daemon.core.answers.questions import ASKING, common_in
from svc_daemon.core.answers.statements import reading_of
from svc_daemon.core.text.words import STOP_WORDS, stem_of, stems_of, words_of

#: What each feature of a statement adds to its score. All are 0 to 1. The question's words count by how rare they are,
#: in English and among the candidates.
WEIGHTS: Mapping[str, float] = {
    # The question's words that neither the statement nor what it belongs to has; that it has itself; and its score.
    "lacked": -2.97,
    "own": 1.24,
    "covered": 1.87,
    # It has none of them itself; it and what it belongs to have all.
    "none_own": -1.29,
    "all": 1.12,
    # The first words of the question, which say what is asked for, are in the statement itself.
    "asked": 0.81,
    # "Who?", and it has a name that the question doesn't; or no name.
    "person": 1.38,
    "nobody": -1.45,
    # It has the kind of amount asked for, a number of what is counted, or no such amount.
    "measured": 0.99,
    "counted": 0.68,
    "unmeasured": -1.17,
    # A row whose first cell has only words of the question, or none of whose cells has; a form's line, whose name has
    # only them; and a label.
    "named_row": 0.96,
    "other_row": -1.52,
    "named_field": 0.67,
    "field": -0.56,
    "label": -0.71,
    # "Why?", and it has a word such as "because".
    "reason": 0.81,
    # The rank of its passage, and that the passage alone supports no answer.
    "rank": -1.99,
    "unworthy": -1.11,
}
#: What the features of a question add to the score of saying nothing: words that are nowhere in the passages, how many
#: words it has, how many statements may answer it, and that it isn't English.
SILENCE: Mapping[str, float] = {"always": -1.81, "nowhere": -0.52, "long": 0.65, "many": 1.20, "foreign": -0.69}
#: Added to how rare a word is among the candidates.
_EVERYWHERE = 0.3
#: More words than so many count as so many.
_MOST_WORDS = 8
#: How many passages a search usually finds, and the logarithm of how many candidates these may have.
_PASSAGES, _CANDIDATES = 10, 6

_ASKS = re.compile(
    r"^\W*(?:(?:and|so|please|tell me|give me|show me)\W+)*(how \w+|what time|what|which|whose|whom|who|when|where|why|"
    r"warum|pourquoi|wie viele|wie lange|wie|wer|wann|wo|was|welche\w*|quand|qui|où|combien|quel\w*|qué|quién|"
    r"cuánt[oa]s?|cuándo|dónde|cuál|cómo)\b"
)
_ASKS_WHO = frozenset(("who", "whom", "whose", "wer", "qui", "quién"))
_ASKS_WHY = frozenset(("why", "how come", "warum", "pourquoi"))
_REASON = re.compile(r"\b(?:because|since|so that|therefore|due|cause[ds]?|reason|otherwise|or|weil|damit|car)\b")
#: What ends the words that say what is asked for.
_PARTS = re.compile(
    r"\b(?:of|for|in|on|at|to|by|from|with|about|per|do|does|did|is|are|was|were|can|may|must|has|have|had|der|des|du|"
    r"de|del|von|für|im|auf|la|le|el|los|las|les|en)\b"
)
_HOW_MANY = re.compile(r"(?:how many|number of|wie viele?|combien de|cuánt[oa]s) (\w+)")
_NAME = re.compile(r"[^\W\d_a-z][\w'’-]*\.?(?: (?:[a-z]{1,3} )?[^\W\d_a-z][\w'’-]*\.?)+")  # noqa: RUF001
_CELL = re.compile(r"\s*[|;\t]\s*|,(?=\S)|\s{2,}")
_PLAIN_WORD = re.compile(r"[^\W_]+")
_STOP = re.compile(r"[.!?;:|]")
_STOP_STEMS = frozenset(map(stem_of, STOP_WORDS))
#: How many words after a number what it counts may stand.
_NEAR = 3


class Judge:
    """Judges the candidates for the answer of one question."""

    def __init__(self, asked: Asked, found: Sequence[Scored], worthy: Sequence[bool]) -> None:
        self.asked, self.found, self.worthy = asked, found, worthy
        foreign = frozenset(map(stem_of, common_in(asked.question)))
        stems = [stem_of(word) for word in words_of(asked.question)]
        plain = foreign | ASKING | _STOP_STEMS
        named = [*(stem for stem in stems if stem in asked.weights), *asked.weights]
        #: The stems of the words that count.
        self.content = [*dict.fromkeys(named if asked.needs else (stem for stem in stems if stem not in plain))]
        self.is_foreign = bool(foreign)
        begin = _ASKS.match(asked.question)
        self.is_why = begin is not None and begin[1] in _ASKS_WHY
        self.is_who = begin is not None and begin[1] in _ASKS_WHO
        # What says what is asked for: "deadline" of "what is the deadline for claims".
        parts = (
            [stem_of(word) for word in words_of(part)]
            for part in _PARTS.split(asked.question[begin.end() if begin else 0 :])
        )
        self.first = next(
            filter(None, ([stem for stem in part if stem in self.content] for part in parts)), self.content
        )
        words = _PLAIN_WORD.findall(asked.question)
        self.words = frozenset(words) | frozenset(map(stem_of, words))
        many = _HOW_MANY.search(asked.question)
        self.counts = likes_of(stem_of(many[1])) if many and many[1] not in UNITS else frozenset[str]()
        self.likes = {stem: likes_of(stem) for stem in self.content}
        #: For each candidate, the words that count which it has itself.
        self.own = [asked.counting(each.statement.text) | asked.counting(each.statement.heads) for each in found]
        having = {stem: sum(not likes.isdisjoint(own) for own in self.own) for stem, likes in self.likes.items()}
        rarity = {stem: math.log((len(found) + 2) / (count + 0.5)) for stem, count in having.items()}
        most = math.log((len(found) + 2) / 0.5)
        self.weights = {stem: chance_of(stem) ** -0.25 * (_EVERYWHERE + each / most) for stem, each in rarity.items()}

    def chances(self) -> list[float]:
        """Return how likely each candidate is the answer; what can't be has none."""
        scores = [
            self.score(each, own) if self.may_be(each) else -math.inf
            for each, own in zip(self.found, self.own, strict=True)
        ]
        silence = sum(SILENCE[name] * value for name, value in self.silence())
        most = max(silence, max(scores, default=0.0))
        shares = [math.exp(score - most) for score in scores]
        total = math.exp(silence - most) + sum(shares)
        return [share / total for share in shares]

    def silence(self) -> Iterator[tuple[str, float]]:
        nowhere = {stem_of(word) for word in self.asked.nowhere}
        yield "always", 1.0
        yield "nowhere", sum(stem in nowhere for stem in self.content) / max(1, len(self.content))
        yield "long", min(len(self.content), _MOST_WORDS) / _MOST_WORDS
        yield "many", math.log(len(self.found) + 1) / _CANDIDATES
        yield "foreign", float(self.is_foreign)

    def may_be(self, scored: Scored) -> bool:
        """Return whether a statement says something of what is asked, and not of another in an order or title."""
        statement, asked = scored.statement, self.asked
        if asked.is_repeated(scored) or asked.is_out_of_order(statement):
            return False
        if asked.measure and not scored.measured and not asked.may_be_measured(statement):
            return False
        if not asked.told <= frozenset[str]().union(*(reading.words for reading in statement.scope)):
            return False
        return not {stem_of(word) for word in words_of(statement.text)} <= asked.words

    def score(self, scored: Scored, own: frozenset[str]) -> float:
        return sum(WEIGHTS[name] * value for name, value in self.features(scored, own))

    def features(self, scored: Scored, own: frozenset[str]) -> Iterator[tuple[str, float]]:
        statement, asked = scored.statement, self.asked
        scope = own.union(*map(asked.counting, (statement.head, *statement.around, *statement.above)))
        has = {stem for stem, likes in self.likes.items() if not likes.isdisjoint(own)}
        lacked = {stem for stem, likes in self.likes.items() if likes.isdisjoint(scope)}
        total, first = sum(self.weights.values()) or 1.0, sum(self.weights[stem] for stem in self.first) or 1.0
        yield "lacked", sum(self.weights[stem] for stem in lacked) / total
        yield "own", sum(self.weights[stem] for stem in self.content if stem in own) / total
        yield "asked", sum(self.weights[stem] for stem in self.first if stem in own) / first
        yield "covered", scored.covered
        yield "none_own", float(not has)
        yield "all", float(not lacked)
        yield "rank", scored.passage / max(len(self.worthy), _PASSAGES)
        yield "unworthy", float(not self.worthy[scored.passage] and not asked.needs)
        if self.is_why:
            yield "reason", float(_REASON.search(statement.text) is not None)
        yield "label", float(statement.kind == "label")
        if self.is_who:
            yield "person" if self.has_person(statement.text) else "nobody", 1.0
        if asked.measure and scored.measured in (0.0, 1.0):
            yield "measured" if scored.measured else "unmeasured", 1.0
        if self.counts:
            yield "counted", float(self.is_counted(statement.text))
        if statement.kind == "row":
            cells = [self.is_asked(cell) for cell in _CELL.split(statement.text)]
            yield "named_row", float(cells[0])
            yield "other_row", float(not any(cells))
        if statement.kind == "field":
            yield "field", 1.0
            yield "named_field", float(stems_of(statement.text.partition(":")[0]) <= asked.words)

    def has_person(self, text: str) -> bool:
        names = (_PLAIN_WORD.findall(match[0].lower()) for match in _NAME.finditer(text))
        return any(not self.words.issuperset(name) for name in names)

    def is_asked(self, cell: str) -> bool:
        """Return whether a cell has nothing but words of the question."""
        words = _PLAIN_WORD.findall(cell.lower())
        return bool(words) and all(word in self.words or stem_of(word) in self.words for word in words)

    def is_counted(self, text: str) -> bool:
        """Return whether a text has a number of what the question counts: "seven tiles"."""
        reading = reading_of(text)
        for at, _ in reading.counted:
            for token in reading.tokens[at + 1 : at + 1 + _NEAR]:
                if _STOP.search(reading.text, reading.tokens[at].end, token.start):
                    break
                if stem_of(token.low) in self.counts:
                    return True
        return False
