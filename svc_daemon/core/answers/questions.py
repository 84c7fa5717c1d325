"""Questions: what a question names, what it asks for, and how much its other words weigh.

It may ask for a kind of amount, such as money or a day. If some statements on what is named have one, others are out.
"""

import re
from collections.abc import Mapping, Sequence, Set
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple

from svc_daemon.core.answers.likenesses import forms_in, is_elsewhere, likes_of
from svc_daemon.core.answers.particulars import NO_NAMES, Need, is_alone, may_be_named, needs_of, told_by_titles
from svc_daemon.core.answers.passages import RARE, Passage, chance_of, is_familiar
from svc_daemon.core.answers.quantities import (
    ASKED_UNITS,
    ASKS_FOR_VALUE_ELSEWHERE,
    COUNTS_ELSEWHERE,
    ORDER,
    UNITS,
    without_names,
)
from svc_daemon.core.answers.readings import Reading, label_of
from svc_daemon.core.answers.statements import Statement, reading_of
from svc_daemon.core.dates import ASKS_WHEN, DAY_NAMES, MONTHS, TIME_ELSEWHERE
from svc_daemon.core.text.languages import common_in, language_of, without_asking
from svc_daemon.core.text.words import STOP_WORDS, parts_of, stem_of, stems_of, words_of

#: The weight of words in what a statement belongs to, compared to words in the statement itself.
CONTEXT_SHARE = 0.5
#: The weight of a word that is used for the question's word, compared to that word.
LIKE_SHARE = 0.6
#: The weight of words in the line right above a statement.
HEAD_SHARE = 0.8
#: The weight of the kind of amount that a question asks for, compared to that of a rare word.
MEASURE_SHARE = 0.75
#: The weight of the question's own words, compared to words that were added from earlier questions.
OWN = 2.0
#: So many of the things that a question names are looked for: no quote has more, and a pasted log has hundreds.
MOST_NAMED = 32
ASKING = frozenset(map(stem_of, ["show", "give", "list", "find", "name", "tell", "say", "please", "many", "much"]))

#: What asks for money, too, unless it says what else it asks for.
_HOW_MUCH = re.compile(
    r"how much (?:is|are|was|were|does|do|did)\b"
    r"(?!.*\b(?:weigh|carry|hold|contain|use|consume|produce|need|lift|draw)\b)"
)
_COLOURS = "red orange yellow green blue purple violet pink brown black white gr[ae]y beige silver gold(?:en)?"
_DAY_FORMS = "|".join(f"{day}s?" for day in DAY_NAMES)
_MONTH_FORMS = "january|" + "|".join(rf"{month}|{month[:3]}\b(?!@)" for month in MONTHS[1:] if month != "may")
_MONTH_FORMS += "".join(rf"|{a} \d|(?<=\d ){a}|(?<=\d\w\w ){a}|(?<=\bin ){a}" for a in ("may", "jan"))  # Names, too.
#: A day or a time of day; what is only as long as that is a duration.
_TIME = rf"\b\d\d?:\d\d\b|\b(?:{_DAY_FORMS}|weekdays?|weekends?|daily|mon|tue|wed|thu|fri|sat|sun)\b|\b(?:19|20)\d\d\b"
_TIME += r"|\b\d\d?(?:[.:]\d\d)? ?(?:[-–]|to|until) ?\d\d?(?:[.:]\d\d)?(?![\w-])"  # noqa: RUF001
_TIME += rf"|\b(?:{_MONTH_FORMS})\b|\bnoon\b|\bmidnight\b|\d ?[ap]\.?m\b|\bo'clock\b|\b\d\d?\.\d\d (?:h|uhr)\b"
_TIME += r"|\b\d\d?(?:st|nd|rd|th) (?:day|of (?:the|each|every|a|any))\b"
_TIME += r"|\b(?:first|second|third|fourth|fifth|sixth|seventh|last) (?:day|week|month|year)\b" + TIME_ELSEWHERE
_LONGER = r"\b(?:under|over|below|above|(?:younger|older) than|from|least)"
_AGE = rf"\d+[- ]years?\b|\d+ months old|{_LONGER} \d+\b(?! ?(?:[°%€£$]|[a-z]{{1,3}}\b))"
_AGE += r"|\b(?:aged?|ages) (?:of )?\d"
_ASKS_FOR_TIME = r"^\W*(?:\w+\W+){0,2}?when\b|\bwhen (?:is|are|was|were|do|does|did|will|can|must|should|has|have)\b"
_ASKS_FOR_TIME += r"|what time|(?:what|which) (?:date|day|month|year|weekday)|\bdate\b|\bdeadline\b"
_ASKS_FOR_TIME += r"|\b(?:day|time) (?:and|of)\b|\b(?:opening|visiting|office|business) (?:hours|times)\b|" + ASKS_WHEN
_ASKS_FOR_VERSION = r"(?:which|what) (?:\w+ )?(?:version|release|firmware|build)\b"
_ASKS_FOR_VERSION += r"|\b(?:version|release) (?:that|which|when|did|has|had)\b"
_PHONE = r"(?<!\d)(?!\d{4}-\d\d-)\+?\d[\d ()/-]{5,}\d|\b\d{3}\.\d{3}\.\d{4}\b|\b\d\d(?:\.\d\d){4}\b"
_PHONE += r"|\b(?:ext|extension|tel|phone|telephone|telefon(?:nummer)?|teléfono|téléphone|mobile|hotline|fax)\b"
_PHONE += r"(?:\W{0,3}(?:(?:number|no|nr)\b\W{0,3})?|[^\d\n:.;]{0,30}: ?)\d\d"
#: Questions for something else, what it is called, and what it looks like in lower case.
_ASKED_SHAPES = (
    (_ASKS_FOR_TIME, "date", _TIME),
    (r"\bages?\b|how old|youngest|oldest", "age", _AGE),
    (r"\bcolou?rs?\b|looks? like", "colour", rf"\b(?:{'|'.join(_COLOURS.split())})"),
    (_ASKS_FOR_VERSION, "version", r"\bv?\d+\.\d+"),
    (r"\bcapacity\b", "capacity", r"\b\d+"),
    (r"\b(?:tele)?phone|t[ée]l[ée](?:fono?|phone)|\bextension\b|\bfax\b", "phone", _PHONE),
    (r"\biban\b", "iban", r"\b[a-z]{2}\d\d(?: ?[a-z\d]{4}){2}"),
    (r"\bdate of birth\b|\bbirthday\b", "birth", r"\b(?:born|birth\w*|b\.|geb\w*)(?!\w)"),
    (r"e-?mail(?: address| of\b|\W*$)", "mail", "@"),
)
_COUNTS = re.compile(
    rf"\b(?:(?:how many|(?:^|(?:the|total) )number of) (\w+)|{COUNTS_ELSEWHERE}|how much (\w+)|"
    # "Exit code 11" and "the code ISK" name something.
    r"(number|code|id|serial|address|ip|pin)\b(?!\W+[\w-]*\d| \w+\W*$))"
)
#: Of what is counted or numbered, what may be without digits.
_CODES = frozenset(("code", "id", "address", "serial"))
#: Questions for a time of day, which no date in a heading answers.
_ASKS_FOR_HOUR = re.compile(r"what time|o'clock|\b(?:opens?|closes?|shuts?|morning|evening|afternoon)\b")
#: Bounds that a question asks for, and what they are called.
_BOUNDS = ((r"\b(?:from|at) (?:what|which) age", "minimum"), (r"\b(?:up to|until) (?:what|which)\b", "maximum"))
_LABELLED = re.compile(r"([^\W\d_]+)\W+(?=[\w-]*\d)")
#: A question with two parts, which different statements may answer.
_TWO_PARTS = re.compile(
    r"(?:\band|\bor|,) (?:(?:on|in|at|by|for|to) )?(?:is|are|was|were|do|does|did|can|what|who|when|where|which|how)\b"
)
#: Words that begin a question; what begins otherwise may say what it is about before it asks.
_BEGINS = re.compile(r"\W*(?:and |so )?(?:wh(?:at|o|en|ere|ich|y)|how|is|are|was|were|do|does|did|can|may|must)\b")
_ASKS_NO_AMOUNT = re.compile(
    r"\W*(?:and |so )?(?:who|whom|whose|why|what reason|warum|pourquoi|wer|qui|quién|chi|perché|waarom|por qué)\b"
)
_ORDINALS = "|".join(ORDER)
_NO_AMOUNT = re.compile(r"\b(?:no|none|nothing|never|free(?!-))\b", re.IGNORECASE)
_SOME_AMOUNT = re.compile(rf"(?<![\w-])\d|{_NO_AMOUNT.pattern}", re.IGNORECASE)
_NO_WORDS = re.compile(r"[\W_]+")
ORDERED = re.compile(rf"\b({_ORDINALS}) ([^\W\d_]+)")
_AUXILIARY = re.compile(
    r"\b(?:do|does|did|can|may|must|should|will)\b|(?<!what )(?<!which )(?<!who )\b(?:is|are|was|were)\b"
)
#: Kinds that a heading may have: "4.2.1 - 14 March" above what was changed.
_IN_HEADS = frozenset(("date", "version"))
#: Kinds for which no other amount can stand.
_STRICT = frozenset(("mail", "phone", "iban", "birth"))

#: Questions that only a certain kind of word can answer.
_ASKS_FOR_VALUE = re.compile(
    r"\W*(?:(?:in|on|at|by|for|to|from|and) )?"
    r"(?:who|whom|whose|when|where|which|how (?:many|much|long|often|old|far|late|soon)|what (?:time|date|day|year))\b"
    f"|{ASKS_FOR_VALUE_ELSEWHERE}"
)


class Measure(NamedTuple):
    """The kinds of amount or word that a question asks for; an answer has one of them."""

    units: frozenset[str]
    #: Stems of what such an amount is called.
    names: frozenset[str]
    shapes: "tuple[re.Pattern[str], ...]"
    in_heads: "tuple[re.Pattern[str], ...]"
    #: What is counted: stems of the word after "how many", and of the words that people use for it.
    counted: frozenset[str]
    #: Whether it may have no number, such as a colour.
    is_word: bool
    #: Whether nothing else can stand for it, as for an e-mail address.
    is_strict: bool
    #: Whether it may have no digit where it is called by its name, such as the code FR.
    is_code: bool = False

    def share_in(self, text: Reading, heads: Reading) -> float:
        """Return how much a text has of it: 1, a half for a number of something else, or 0.

        The unit or name of a row's number may be in its column's heading.
        """
        if any(shape.search(text.text.lower()) for shape in self.shapes):
            return 1.0
        if self.units and any(each.unit in self.units for each in text.amounts):
            return 1.0
        spelled = (text.tokens[at].low for at, each in text.counted if each.value > 1)
        if self.is_code and not self.counted.isdisjoint(heads.words | text.words):
            return 1.0
        if not any(token.has_digit for token in text.tokens) and all("-" in word for word in spelled):
            return 0.0
        named = any(UNITS.get(token.low) in self.units for token in heads.tokens)
        if named or not self.names.isdisjoint(heads.words) or not self.counted.isdisjoint(heads.words | text.words):
            return 1.0
        return 0.5 if self.counted else 0.0


@lru_cache(maxsize=256)
def measure_of(question: str) -> Measure | None:
    """Return the kind of amount that a question, in lower case, asks for, if it does."""
    found = [(name, units) for pattern, name, units in ASKED_UNITS if re.search(pattern, question)]
    shapes = [(name, shape) for pattern, name, shape in _ASKED_SHAPES if re.search(pattern, question)]
    strict = [(name, shape) for name, shape in shapes if name in _STRICT]
    shapes = strict or shapes
    if strict or question.startswith("when") or re.match(ASKS_WHEN, question):
        found = []
    counts = _COUNTS.search(question)
    many = (counts[1] or counts[2]) if counts else ""
    named = (many or counts[3] or counts[4]) if counts else ""
    is_counted = counts and (many or not (found or shapes) or named in UNITS)
    counted = named if is_counted and named not in STOP_WORDS else ""
    if many and counted:
        found, shapes = [], []
    if UNITS.get(counted):
        found, shapes, counted = [("", UNITS[counted])], [], ""
    if _ASKS_NO_AMOUNT.match(question):
        return None
    parts = _TWO_PARTS.search(question)
    is_two = parts and (parts[0][0] != "," or _BEGINS.match(question))
    if not (found or shapes or counted) and _HOW_MUCH.search(question):
        found = [ASKED_UNITS[0][1:]]
    if not (found or shapes or counted) or is_two:
        return None
    names = (*(name for name, _ in (*found, *shapes) if name),)
    return Measure(
        frozenset(unit for _, units in found for unit in units.split()),
        frozenset[str]().union(*(likes_of(stem_of(name)) for name in names)),
        tuple(re.compile(shape) for _, shape in shapes),
        tuple(re.compile(shape) for name, shape in shapes if name in _IN_HEADS and not _ASKS_FOR_HOUR.search(question)),
        likes_of(stem_of(counted)) if counted else frozenset(),
        any(name == "colour" for name, _ in shapes),
        any(name in _STRICT for name, _ in shapes),
        is_code=counted in _CODES,
    )


class Question:
    """What a question names and asks for, and the weights of its other words."""

    def __init__(self, question: str, searched: str, passages: Sequence[Passage]) -> None:
        self.question = question.lower()
        text = "\n".join(part for passage in passages for part in (*passage.chunk.headings, passage.text))
        needs = [each for each in needs_of(question) or needs_of(searched) if may_be_named(each, text)][:MOST_NAMED]
        language = language_of(question, text)
        #: For words in another language than English, their other forms that the passages have.
        self.forms = forms_in(words_of(f"{question} {searched}"), [text], language) if language else {}
        nowhere = _nowhere(self.question, "\n".join((text, *(each.title for each in passages))))
        self.nowhere = frozenset(word for word in nowhere if not self.forms.get(stem_of(word)))
        self.needs = needs + _names_known(question, needs, text) + _variants(question, needs, self.nowhere)
        #: Whether the title of the best passage has a near-twin, or words of the question tell one from its twins.
        self.has_twins, self.told = told_by_titles(question, self.needs, [each.title for each in passages])
        named_texts = [part for each in passages for part in (each.title, *each.chunk.headings, each.text)]
        whole = _NO_WORDS.sub(" ", "\n".join(named_texts).lower())
        names = (need for need in self.needs if need.kind == "name" and not self.goes_on(need, whole))
        #: Whether a question in another language names nothing but days, and too much of it is nowhere.
        is_vague = bool(language) and all(each.value in (*DAY_NAMES, *MONTHS) for each in self.needs)
        self.is_elsewhere = is_vague and is_elsewhere(question, text, self.nowhere, language)
        self.alone = frozenset(need for need in names if any(is_alone(need.text, part) for part in named_texts))
        self.groups = [[need for need in self.needs if need.group == group] for group in {n.group for n in self.needs}]
        own = stems_of(question)
        named = {stem_of(word) for need in self.needs for word in words_of(need.text)}
        self.weights = self._weigh(question, searched, passages, named)
        self.measure = measure_of(self.question)
        self.measure_weight = MEASURE_SHARE / RARE**0.25 if self.measure and self.needs else 0.0
        self.total = sum(self.weights.values()) + self.measure_weight
        self.words = frozenset(own | named)
        counting = frozenset[str]().union(*map(self.likes_of, self.words | self.weights.keys()))
        counting |= self.measure.names if self.measure else frozenset()
        self.counting = cache(lambda text: reading_of(text).words & counting)
        #: Its numbers and codes: "edition 2024" isn't a number of days in 2024.
        bare = [re.sub(r"^(\D*\s)?\W*(v(?=\d))?", "", each.text) for each in self.needs if re.search(r"\d", each.text)]
        self.numbers = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, bare))})(?![\w-])") if bare else None

    def _weigh(self, question: str, searched: str, passages: Sequence[Passage], named: Set[str]) -> Mapping[str, float]:
        own = stems_of(question)
        if self.needs:
            asked = (own or stems_of(searched)) - named - ASKING - set(map(stem_of, common_in(self.question)))
            # In "how much is gas in zone Harbour", the zone only says what Harbour is.
            kinds = (re.finditer(rf"(\w+)\W+{re.escape(need.text)}", question) for need in self.needs)
            kind = {label_of(match[1]) for found in kinds for match in found if is_familiar(match[1])}
            kind |= {label_of(match[1]) for match in _LABELLED.finditer(question)}
            asked = asked - kind or asked
            asked |= {stem_of(word) for pattern, word in _BOUNDS if re.search(pattern, self.question)}
            return {stem: 1 / chance_of(stem) ** 0.25 for stem in sorted(asked)}
        # A word of the question that no passage contains has no weight.
        found = {stem_of(word): weight for passage in passages for word, weight in passage.weights.items()}
        weights = found or dict.fromkeys(stems_of(searched), 1.0)
        return {stem: weight * (OWN if stem in own else 1.0) for stem, weight in weights.items()}

    def likes_of(self, stem: str) -> frozenset[str]:
        """Return the stems of the words that people use for one of the question's, and of its forms."""
        return likes_of(stem) | self.forms.get(stem, frozenset())

    @property
    def asks_for_value(self) -> bool:
        """Return whether only a certain kind of word can be the answer."""
        return _ASKS_FOR_VALUE.match(self.question) is not None

    @property
    def names_things(self) -> bool:
        """Return whether it names a thing. An abbreviation such as API counts only in a question for a value.

        An option of a program doesn't: what it does may be said in any words.
        """
        things = (need for need in self.needs if need.kind != "option")
        return any(self.asks_for_value or need.kind != "name" or not need.text.isupper() for need in things)

    def goes_on(self, need: Need, text: str) -> bool:
        """Return whether the question has a name with the word after it as a text has it: "classic plus"."""
        found = re.search(rf"{re.escape(need.text.lower())} \w+", self.question)
        return found is not None and found[0] in text

    def may_be_in(self, passage: Passage) -> bool:
        """Return whether a passage can have what the question names."""
        text = f"{passage.context} {passage.lead} {passage.text}".lower()
        return all(any(need.key in text for need in group) for group in self.groups)

    def is_about(self, statement: Statement, need: Need) -> bool:
        """Return whether a statement has what the question names, and not only a longer name: "Basic Plus" for Basic.

        The longer name may be another thing's only if some passage has the shorter one alone.
        """
        if not statement.covers(need):
            return False
        if need not in self.alone:
            return True
        found = (is_alone(need.text, reading.text) for reading in statement.scope)
        return next((each for each in found if each is not None), True)

    def is_longer(self, statement: Statement) -> bool:
        """Return whether a statement is about a thing with a longer name than one that the question names."""
        return any(is_alone(need.text, statement.text) is False for need in self.alone)

    def lacks(self, statement: Statement) -> list[Need]:
        """Return what the question names and the statement isn't about; alternatives only if it is about none."""
        groups = [[need for need in group if not self.is_about(statement, need)] for group in self.groups]
        return [
            need
            for lacking, group in zip(groups, self.groups, strict=True)
            for need in lacking
            if len(lacking) == len(group)
        ]

    def share_of(self, stem: str, *places: frozenset[str]) -> float:
        """Return how much of a word a statement has: itself, the line above it, or what else it belongs to."""
        shares = (1.0, HEAD_SHARE if self.needs else CONTEXT_SHARE, CONTEXT_SHARE)
        best = like = 0.0
        for share, place in zip(shares, places, strict=True):
            if place and share > best and (stem in place or not self.forms.get(stem, frozenset()).isdisjoint(place)):
                best = share
            if place and share > like and self.needs and not likes_of(stem).isdisjoint(place):
                like = share
        return max(best, LIKE_SHARE * like)

    def measured(self, statement: Statement) -> float:
        """Return how much a statement has of the kind of amount or word that the question asks for."""
        if self.measure is None:
            return 0.0
        text = self.numbers.sub(" ", statement.text) if self.numbers else statement.text
        share = self.measure.share_in(reading_of(text), reading_of(statement.heads))
        return share if share == 1.0 or self.measure.counted.isdisjoint(map(stem_of, self.nowhere)) else 0.0

    def may_be_measured(self, statement: Statement) -> bool:
        """Return whether a statement may have what is asked for in other words: a price in francs, or no fee."""
        if self.measure is None or self.measure.is_word:
            return True
        if self.measure.is_strict:
            return False
        text = self.numbers.sub(" ", statement.text) if self.numbers else statement.text
        text = without_names(text, is_plain=not self.measure.shapes)
        found = reading_of(text).quantities
        if self.measure.units and found and all(each.unit for each in found) and "how high" not in self.question:
            # Only amounts of other kinds: "£14" says no weight, but how high a fee is.
            return _NO_AMOUNT.search(text) is not None
        return bool(_SOME_AMOUNT.search(text) or found)

    def is_replaced(self, statement: Statement) -> bool:
        """Return whether a row's name has another word in the place of one asked for: white paint for blue."""
        name = {stem_of(word) for word in words_of(statement.subject) if word.isalpha()}
        if not self.nowhere or name <= self.words or not name & self.words:
            return False
        pairs = pairwise(words_of(self.question))
        return any(
            stem_of(one) in name and other in self.nowhere for pair in pairs for one, other in (pair, pair[::-1])
        )

    def is_out_of_order(self, statement: Statement) -> bool:
        """Return whether a statement is only about others in an order: the second floor for the third."""
        text = statement.text.lower()
        for asked, what in ORDERED.findall(self.question):
            found = re.findall(rf"\b({_ORDINALS}|additional|further|other) (?:\w+ )?{re.escape(what)}", text)
            if found and ORDER[asked] not in (ORDER.get(order, ORDER[asked]) for order in found):
                return True
        return False


def _nowhere(question: str, text: str) -> frozenset[str]:
    """Return the words of a question which a text doesn't have, nor what people use for them."""
    text = " ".join((text, *parts_of(text))).lower()
    stems = set(map(stem_of, set(words_of(text))))
    common = STOP_WORDS | common_in(question)
    asked = (part for word in words_of(question) for part in without_asking(word))
    words = (word for word in asked if word.isalpha() and len(word) > 1 and word not in common)
    # Some languages don't part words by spaces.
    words = (word for word in words if word.isascii() or word not in text)
    return frozenset(word for word in words if likes_of(stem_of(word)).isdisjoint(stems))


def _names_known(question: str, needs: Sequence[Need], text: str) -> list[Need]:
    """Return the words of a question, in lower case, that a text only has as names: "velocor" for Velocor 5."""
    named = {word for need in needs for word in words_of(need.text)}
    found: list[Need] = []
    # Some languages write all nouns with capitals.
    for word in () if common_in(question) else dict.fromkeys(words_of(question)):
        if not word.isalpha() or len(word) < 3 or word in named | NO_NAMES or is_familiar(word):
            continue
        if not (word.capitalize() in text or word.upper() in text):
            continue
        capital = rf"(?:{word.capitalize()}|{word.upper()})"
        if re.search(rf"(?:[a-z] {capital}\b|\b{capital} v?\d)", text) and not re.search(rf"\b{word}\b", text):
            found.append(Need(word, "name", word, key=word, group=len(needs) + len(found) + 100))
    return found


def _variants(question: str, needs: Sequence[Need], nowhere: frozenset[str]) -> list[Need]:
    """Return what makes another thing of a code or number: "pro" of "the price of the Kestrel 500 pro"."""
    found: list[Need] = []
    for need in needs:
        begin = re.match(rf"\W*([A-Z]\w+) {re.escape(need.text)}\b", question) if need.kind == "name" else None
        if begin and (low := begin[1].lower()) in nowhere and likes_of(stem_of(low)) == {stem_of(low)}:
            # "Middle Tarn" begins a question, and there are Upper and Lower Tarn.
            found.append(Need(f"{begin[1]} {need.text}", "name", low, key=low, group=len(needs) + len(found) + 200))
        end = rf"{re.escape(need.text.lower())} ([^\W\d_]+)(?=\W*$| (?:in|of|on|at|for|from|with|to)\b|[,;])"
        may_end = any(map(str.isdigit, need.text)) and not (_AUXILIARY.search(question.lower()) or common_in(question))
        match = re.search(end, question.lower()) if may_end else None
        if match and match[1] in nowhere and not is_familiar(match[1]):
            found.append(Need(match[0], "name", match[1], key=match[1], group=len(needs) + len(found) + 200))
    return found
