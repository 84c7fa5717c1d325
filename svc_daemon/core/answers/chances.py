"""Chances: how likely each statement of the documents that have what a question names is its answer.

A statement about the right thing may still answer another question: the date of filing for that of renewal. So each has
a score from a few features (`WEIGHTS`), and saying nothing has one as well. Their shares of the sum of the exponentials
of all are their chances: of two that are alike, none has more than a half. `tests/bench/fit_chances.py` fits the
weights to the questions of the sets that `docs/explanation/grounding.md` describes.
"""

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import pairwise

from svc_daemon.core.answers.candidates import Asked, Place, Scored
from svc_daemon.core.answers.lines import PAIR, names_in
from svc_daemon.core.answers.particulars import Need, is_in
from svc_daemon.core.answers.passages import chance_of
from svc_daemon.core.answers.statements import LABEL, Statement, reading_of
from svc_daemon.core.answers.wanted import Wanted
from svc_daemon.core.dates import DAY_NAMES, MONTHS
from svc_daemon.core.text.words import STOP_WORDS, parts_of, stem_of, words_of

#: What each feature of a statement adds to its score. All are 0 to 1, but the places are counted. The question's words
#: that count are those that name nothing, by how rare they are in English and among the candidates; words that people
#: use for one count as this.
WEIGHTS: Mapping[str, float] = {
    # The question's words that neither it nor what it belongs to has; those that only the line or heading right above
    # has; those that its document has elsewhere, or the statements beside it; and those that its document hasn't.
    "lacked": -1.57,
    "headed": 0.71,
    "in_document": -1.27,
    "beside": 1.63,
    "not_in_document": -0.19,
    # The first words of the question, which say what is asked for, are in the statement itself, or words used for them.
    "asked": 0.78,
    "asked_like": 0.18,
    # It has none of the words itself; it has the most of all; it has the rarest; nothing around it has that; its score.
    "none_own": -0.71,
    "best_own": 0.80,
    "rarest": -0.58,
    "rarest_lacked": -0.84,
    "covered": 2.26,
    # How many of its words are words for what is asked; and it has the opposite of one.
    "precise": 2.16,
    "opposed": -0.76,
    # What the question names, in its own words, and as the first cell of a row.
    "name_own": 1.14,
    "number_own": 0.82,
    "subject": 0.87,
    # A name or number that only its document has: in its title or first lines, elsewhere in the
    # passage, in another, in part, or in what only others belong to.
    "name_in_front": 0.47,
    "name_in_passage": -2.89,
    "name_in_document": -1.29,
    "name_in_part": 0.84,
    "name_under_another": -1.29,
    "number_in_front": -1.58,
    "number_in_passage": -1.74,
    "number_in_document": -2.19,
    "number_in_part": 0.32,
    "number_under_another": -1.30,
    # The rank of its passage; that the passage alone supports no answer; and that it is the top of the document.
    "rank": -2.94,
    "unworthy": -0.69,
    "top": -1.33,
    # What kind of statement it is; how much of a row's cell, or of a label, is words of the question, or
    # of its first words; how much of these a label has; and that the question has all words of a form's label.
    "row": -1.32,
    "prose": 0.60,
    "label": -1.21,
    "cell": 2.71,
    "key": 1.09,
    "key_first": -0.85,
    "named_field": 1.18,
    # It has a word such as "because" (for why), "means", an hour, "until", "at most" or "not"; it is below the code
    # whose meaning is asked for; for who, it has "by", a name, or no capitalized word.
    "reason": 2.51,
    "means": 1.14,
    "defined": 0.58,
    "hour": 1.76,
    "until": 1.36,
    "at_most": 0.99,
    "denied": 2.57,
    "by": 1.25,
    "person": 2.40,
    "nobody": -1.76,
    # It has no such amount as is asked for; no number; a number of what is counted; the question's numbers that are in
    # words, or only others; and a range of amounts with that of the question, or without it.
    "unmeasured": -1.39,
    "numberless": -0.51,
    "counted": 0.69,
    "spelled": 0.95,
    "otherwise": -0.54,
    "within": 1.68,
    "outside": -0.55,
}
#: What the features of a question add to the score of saying nothing.
SILENCE: Mapping[str, float] = {
    # For any question; words that are nowhere in the passages; how many statements may answer it; it names nothing.
    "always": -0.30,
    "nowhere": -1.08,
    "many": 1.24,
    "nameless": -0.18,
    # It asks who, or for an amount; and no statement has such an amount.
    "who": 1.20,
    "measure": 0.09,
    "unmet": -0.55,
}
#: What scores are multiplied by, so that many poor statements together don't outweigh a good one.
SHARPNESS = 2.0
#: Added to how rare a word is among the candidates.
_EVERYWHERE = 0.3
#: How many passages a search usually finds, and the logarithm of how many candidates these may have.
_PASSAGES, _CANDIDATES = 10, 6
#: A statement that begins within so many characters is at the top of its document, if this is ten times as long.
_TOP = 60

_PLAIN_WORD = re.compile(r"[^\W_]+")
_CELL = re.compile(r"\s*[|;\t]\s*|,(?=\S)|\s{2,}")
_KEY_END = re.compile(r"[:=]")
#: The line above what a mail quotes, and questions that it may answer.
_ATTRIBUTION = re.compile(r"\b(?:wrote|writes|schrieb|a écrit|escribió|ha scritto|schreef)\b[^:\n]{0,60}:\s*\Z")
_WRITTEN = re.compile(
    r"\bw(?:rote|rit(?:e|ten))\b|\bsen[dt]\b|\bmail|\bschr[ei]+b|\bécri|\bescrib|\bscri|\bschr[ei]+[fv]", re.IGNORECASE
)


class Judge:
    """Judges the candidates for the answer of one question."""

    def __init__(self, asked: Asked, found: Sequence[Scored], worthy: Sequence[bool]) -> None:
        self.asked, self.found, self.worthy = asked, found, worthy
        self.wanted = wanted = Wanted(asked)
        self.told = cache(self._told)
        #: For each passage, whether all that the question names is in the names of its document.
        self.titled = [bool(asked.needs) and asked.is_called(passage.title) for passage in asked.passages]
        #: For each candidate, the words that count which it has itself, and those that it or one used for it has.
        own = [asked.counting(each.statement.text) | asked.counting(each.statement.heads) for each in found]
        if asked.measure and wanted.how:
            # "90 days" says how long.
            own = [had | wanted.how if each.measured == 1.0 else had for had, each in zip(own, found, strict=True)]
        self.own = own
        self.has = [{stem for stem, likes in wanted.likes.items() if not likes.isdisjoint(each)} for each in own]
        having = {stem: sum(stem in has for has in self.has) for stem in wanted.content}
        most = math.log((len(found) + 2) / 0.5)
        self.weights: dict[str, float] = {
            stem: chance_of(stem) ** -0.25 * (_EVERYWHERE + math.log((len(found) + 2) / (count + 0.5)) / most)
            for stem, count in having.items()
        }
        self.total: float = sum(self.weights.values()) or 1.0
        self.rarest = max(wanted.content, key=self.weights.__getitem__, default="")
        self.most = max(map(self.share, self.has), default=0.0)
        whole = [self.share(has) for each, has in zip(found, self.has, strict=True) if not each.apart]
        #: The most that a statement has which is itself about all that is named.
        self.most_whole = max(whole, default=-1.0)
        #: The most that a statement has of a document that is called by all that is named.
        called = [self.share(has) for each, has in zip(found, self.has, strict=True) if self.titled[each.passage]]
        self.most_called = max(called, default=-1.0)
        self.blank = [wanted.is_blank(each.statement) for each in found]
        blank = (self.share(has) for has, is_blank in zip(self.has, self.blank, strict=True) if is_blank)
        #: The most that a row has in which what is asked for is empty.
        self.most_blank = max(blank, default=-1.0)
        #: What the statements beside each in its passage have.
        self.beside: list[set[str]] = [set() for _ in found]
        placed = sorted(range(len(found)), key=lambda at: (found[at].passage, found[at].span))
        for one, other in pairwise(placed):
            if found[one].passage == found[other].passage:
                self.beside[one] |= self.has[other]
                self.beside[other] |= self.has[one]

    @cached_property
    def in_rows(self) -> set[tuple[int, Need]]:
        """Return what the question names and a row or record has itself, with the first passage of its document."""
        named = [need for need in self.asked.needs if need.kind in ("name", "code", "label") and ":" not in need.text]
        return {
            (self.asked.beside[each.passage][0], need)
            for each in self.found
            if each.statement.kind in ("row", "record")
            for need in named
            if is_in(need, reading_of(each.statement.text))
        }

    def share(self, stems: Collection[str]) -> float:
        """Return how much of the words that count these are."""
        return sum(self.weights[stem] for stem in stems) / self.total

    def share_of_first(self, stems: Collection[str]) -> float:
        first = self.wanted.first
        total: float = sum(self.weights[stem] for stem in first) or 1.0
        return sum(self.weights[stem] for stem in first if stem in stems) / total

    def chances(self) -> list[float]:
        """Return how likely each candidate is the answer; what can't be has none."""
        scores = [self.score(at) if self.may_be(at) else -math.inf for at in range(len(self.found))]
        silence = sum(SILENCE[name] * value for name, value in self.silence())
        most = max(silence, max(scores, default=0.0))
        shares = [math.exp(SHARPNESS * (score - most)) for score in scores]
        total = math.exp(SHARPNESS * (silence - most)) + sum(shares)
        return [share / total for share in shares]

    def score(self, at: int) -> float:
        return sum(WEIGHTS[name] * value for name, value in self.features(at))

    def silence(self) -> Iterator[tuple[str, float]]:
        nowhere = {stem_of(word) for word in self.asked.nowhere}
        content, measure = self.wanted.content, self.asked.measure
        nowhere -= self.wanted.how
        yield "always", 1.0
        yield "nowhere", sum(stem in nowhere for stem in content) / max(1, len(content))
        yield "many", math.log(len(self.found) + 1) / _CANDIDATES
        yield "nameless", float(not self.asked.needs)
        yield "who", float(self.wanted.is_who)
        yield "measure", float(measure is not None)
        yield "unmet", float(measure is not None and all(each.measured < 1.0 for each in self.found))

    def may_be(self, at: int) -> bool:
        """Return whether a statement can answer at all."""
        scored = self.found[at]
        statement, asked = scored.statement, self.asked
        is_others = any(place is Place.UNDER_ANOTHER for _, place in scored.apart)
        share = self.share(self.has[at])
        is_another = is_others and share <= self.most_whole
        if (
            not asked.has_options(statement)
            or is_another
            or (not self.titled[scored.passage] and share <= self.most_called)
        ):
            return False
        if (
            statement.text.rstrip().endswith("?")
            or (_ATTRIBUTION.search(statement.text) and not _WRITTEN.search(asked.question))
            or asked.is_repeated(scored)
            or asked.is_of_another(statement)
            or asked.is_of_another_year(scored)
            or self.blank[at]
            or share < self.most_blank
        ):
            return False
        if asked.measure and not scored.measured and not asked.may_be_measured(statement):
            return False
        is_twin = any(all(_has_twin(statement, need) for need in group) for group in asked.groups)
        if is_twin or self._is_another(scored):
            return False
        if not asked.told <= frozenset[str]().union(*(reading.words for reading in statement.scope)):
            return False
        return not {stem_of(word) for word in words_of(statement.text)} <= asked.words

    def features(self, at: int) -> Iterator[tuple[str, float]]:
        """Yield the features of a candidate."""
        scored = self.found[at]
        yield from self._words(at, scored)
        yield from self._names(scored)
        yield from self._kinds(scored.statement)
        yield from self.wanted.values(scored)
        if self.asked.measure:
            yield "unmeasured", float(scored.measured == 0.0)

    def _words(self, at: int, scored: Scored) -> Iterator[tuple[str, float]]:
        """Yield which of the question's words a statement, what it belongs to, and its document have."""
        statement, wanted, has = scored.statement, self.wanted, self.has[at]
        scope = self.own[at].union(*map(self.asked.counting, (statement.head, *statement.around, *statement.above)))
        lacked = {stem for stem, likes in wanted.likes.items() if likes.isdisjoint(scope)}
        told = self.told(self.asked.beside[scored.passage][0])
        yield "lacked", self.share(lacked)
        above = self.asked.counting(statement.head or next(iter(statement.above[: statement.headings]), ""))
        yield "headed", self.share({stem for stem, likes in wanted.likes.items() if not likes.isdisjoint(above)} - has)
        yield "in_document", self.share(lacked & told)
        yield "not_in_document", self.share(wanted.likes.keys() - told - has)
        yield "beside", self.share(lacked & self.beside[at])
        yield "asked", self.share_of_first(self.own[at])
        yield "asked_like", self.share_of_first(has - self.own[at])
        yield "none_own", float(not has)
        yield "best_own", float(bool(has) and self.share(has) >= self.most)
        yield "covered", scored.covered
        yield "rarest", float(self.rarest in has)
        yield "rarest_lacked", float(self.rarest in lacked)
        stems = [stem_of(word) for word in words_of(statement.text) if word not in STOP_WORDS]
        rest = [stem for stem in stems if stem not in wanted.named]
        yield (
            "precise",
            sum(stem in wanted.like - wanted.words or stem in wanted.likes for stem in rest) / (len(rest) or 1),
        )
        yield "opposed", float(wanted.is_opposed(stems))

    def _told(self, first: int) -> set[str]:
        """Return the words that count which the document of a passage has."""
        passages = [self.asked.passages[at] for at in self.asked.beside[first]]
        texts = [text for each in passages for text in (each.text, *each.chunk.headings)]
        told = frozenset[str]().union(*map(self.asked.counting, (*texts, *names_in(passages[0].title))))
        return {stem for stem, likes in self.wanted.likes.items() if not likes.isdisjoint(told)}

    def _names(self, scored: Scored) -> Iterator[tuple[str, float]]:
        """Yield where a statement, or else its document, has what the question names."""
        statement, asked = scored.statement, self.asked
        reading, has_units = reading_of(statement.text), not statement.may_lack_units(0)
        for group in asked.groups:
            if any(is_in(need, reading, has_units=has_units) for need in group):
                yield "number_own" if any(map(str.isdigit, group[0].text)) else "name_own", 1.0 / len(asked.groups)
        for has_digit, place in scored.apart:
            yield f"{'number' if has_digit else 'name'}_{place.name.lower()}", 1.0
        cell = statement.subject.lower().strip("`*\"'")
        yield "subject", float(any(cell in (low := need.text.lower(), low.rpartition(" ")[2]) for need in asked.needs))
        passage = asked.passages[scored.passage]
        yield "rank", scored.passage / max(len(self.worthy), _PASSAGES)
        yield "unworthy", float(not self.worthy[scored.passage] and not asked.needs)
        is_first = not passage.chunk.ordinal and len(passage.text) > 10 * _TOP
        yield "top", float(is_first and statement.span.start < _TOP)

    def _kinds(self, statement: Statement) -> Iterator[tuple[str, float]]:
        """Yield what kind of statement it is, and which of the question's words its labels have."""
        wanted = self.wanted
        if statement.kind in ("row", "prose", "label"):
            yield statement.kind, 1.0
        if statement.kind == "row":
            yield "cell", max(_part(_stems(cell), wanted.like) for cell in _CELL.split(statement.text))
        keys = list(filter(None, map(_stems, _keys_of(statement))))
        if keys:
            yield "key", max(_part(key, wanted.like) for key in keys)
            yield "key_first", max(_part(key, wanted.like_first) for key in keys)
        if statement.kind == "field":
            yield "named_field", float(self.asked.has_key_of(statement))

    def _is_another(self, scored: Scored) -> bool:
        """Return whether a row lacks a name that another row of its document has."""
        if scored.statement.kind not in ("row", "record"):
            return False
        first = self.asked.beside[scored.passage][0]
        return any((first, need) in self.in_rows and not scored.statement.has(need) for need in self.asked.needs)


def _has_twin(statement: Statement, need: Need) -> bool:
    """Return whether a statement, or what it belongs to, only has another number, day or month: contract 4 for 40."""
    own = reading_of(statement.text)
    dates = next((names for names in (DAY_NAMES, MONTHS) if need.value in names), ())
    if any(name in own.spelled for name in dates):
        return not statement.covers(need)
    label = LABEL.match(need.value) if need.kind in ("label", "code") and isinstance(need.value, str) else None
    if label is None or statement.has(need):
        return False
    heads = (statement.head, *statement.around, *statement.above[: statement.headings])
    is_headed = any(label[0] in reading_of(head).labels for head in heads)
    is_apart = is_headed and not any(is_in(need, reading) for reading in statement.scope)
    return is_apart or label[0] in own.labels


def _keys_of(statement: Statement) -> list[str]:
    """Return what names the parts of a statement: of a form's line, of an object, or of a row's cells."""
    if statement.kind == "field":
        return _KEY_END.split(statement.text, maxsplit=1)[:1]
    if statement.kind == "record":
        return [key for key, _ in PAIR.findall(statement.text)]
    return statement.heads.split(" | ") if statement.kind == "row" else []


def _stems(text: str) -> list[str]:
    parts = " ".join(parts_of(text)) or text
    return [stem_of(word) for word in _PLAIN_WORD.findall(parts.lower()) if word not in STOP_WORDS]


def _part(stems: Sequence[str], among: Collection[str]) -> float:
    return sum(stem in among for stem in stems) / (len(stems) or 1)
