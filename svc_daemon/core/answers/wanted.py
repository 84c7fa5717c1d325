"""What a question asks for besides what it names: its other words, and the kind of word or amount that answers it."""

import re
from collections.abc import Collection, Iterator

from svc_daemon.core.answers.candidates import Asked, Scored
from svc_daemon.core.answers.likenesses import OPPOSITES, are_of_one_root, likes_of
from svc_daemon.core.answers.lines import EMPTY, PAIR
from svc_daemon.core.answers.particulars import TITLES, is_in
from svc_daemon.core.answers.quantities import ORDER, UNITS, Quantity
from svc_daemon.core.answers.questions import ASKING
from svc_daemon.core.answers.statements import Statement, reading_of
from svc_daemon.core.text.languages import common_in
from svc_daemon.core.text.words import STOP_WORDS, stem_of, stems_of, words_of

_BEGIN = r"^\W*(?:(?:and|so|please|tell me|give me|show me)\W+)*"
_ASKS = re.compile(
    rf"{_BEGIN}(how \w+|what time|what|which|whose|whom|who|when|where|why|warum|pourquoi|wie viele|wie lange|wie|wer|"
    r"wann|wo|was|welche\w*|quand|qui|où|combien|quel\w*|qué|quién|cuánt[oa]s?|cuándo|dónde|cuál|cómo)\b"
)
_PERSONS = (
    "person people colleague employee member judge officer sailor teacher doctor dentist nurse vet inspector auditor "
    "conductor soloist pianist player manager director chair chairman secretary treasurer clerk engineer technician "
    "driver captain pilot skipper councillor lawyer solicitor architect surveyor builder author artist composer tenant "
    "landlord customer client patient guest helper volunteer supervisor trainer coach chef cook gardener farmer "
    "mechanic electrician plumber operator buyer seller caretaker man woman boy girl child"
)
_ASKS_WHO = re.compile(
    rf"{_BEGIN}(?:who|whom|whose|wer|qui|quién)\b|\b(?:which|what) (?:\w+ )?(?:{_PERSONS.replace(' ', '|')})\b(?!['’]s)"  # noqa: RUF001
)
#: Kinds of words: how a question asks for one, and what has one, in lower case.
_KINDS = tuple(
    (kind, re.compile(asks), re.compile(has))
    for kind, asks, has in (
        (
            "reason",
            rf"{_BEGIN}(?:why|how come|warum|pourquoi)\b",
            (
                r"\b(?:because|since|as (?:the|it|they|we|he|she|there)|being|thanks to|owing to|in order|to avoid|"
                r"so that|therefore|due|cause[ds]?|reason|otherwise|or|weil|wegen|damit|car|parce|afin|porque)\b"
            ),
        ),
        (
            "means",
            r"\b(?:mean|stand for|signify|bedeutet|significa|signifie)\b",
            r"\b(?:is|are|means?|stands? for|refers? to|signifies|bedeutet|heißt|significa|signifie)\b",
        ),
        (
            "hour",
            r"\b(?:what time|what hour|how (?:late|early))\b",
            r"\b\d\d?[:.]\d\d\b|\d ?[ap]\.?m\b|\bnoon\b|\bmidnight\b|o'clock|\b\d\d? (?:h|uhr)\b",
        ),
        (
            "until",
            (
                r"\b(?:until|by) when\b|\bby what\b|\bdeadline\b|\blatest\b|\bhow long\b.*\bvalid\b|"
                r"\bbis wann\b|\bwhen\b.*\b(?:expires?|run out|due)\b"
            ),
            r"\b(?:until|till|by|before|latest|valid|expires?|due|deadline|no later|within|bis|avant|hasta|entro)\b",
        ),
        (
            "at_most",
            r"\b(?:at most|maxim\w*|max|up to|limit|most|highest|largest|longest|heaviest|höchstens|maximal)\b",
            (
                r"\b(?:at most|maxim\w*|max|up to|limit\w*|no more|not more|within|(?:not|never|n['’]t) exceed|"  # noqa: RUF001
                r"not? (?:later|longer|over|above)|höchstens|maximal)\b|≤"
            ),
        ),
        (
            "denied",
            r"\b(?:not|no longer|never|without|except|excluded?|refused?|banned|forbidden|cannot)\b|n['’]t\b",  # noqa: RUF001
            (
                r"\b(?:no|not|never|none|without|except|excluded?|excluding|refused?|banned|forbidden|cannot|nicht|kein\w*|"
                r"nur|only|sold out|unless|nobody|nothing|missing)\b|n['’]t\b"  # noqa: RUF001
            ),
        ),
    )
)
#: Questions for an amount of which no unit is known.
_ASKS_NUMBER = re.compile(
    r"\b(?:what|which)(?: \w+){0,3} (?:value|score|rate|level|ratio|mileage|balance|reading|size|dose|amount|quantity|"
    r"number|total|share|quota|limit|margin|mark|result|concentration|turnover|yield)\b|"
    r"^(?:\W*+\w++){0,3}?\W+(?:value|score|rate|level|ratio|mileage|balance|dose|quota)\b"
)
_HOW_MANY = re.compile(
    r"(?:how many|how much(?! (?:is|are|was|were|do|does|did|can|may|must|will|would|has|have|to|of|per|a|the|for|at)"
    r"\b)|(?:^|(?:the|total) )number of|wie viele?|combien de|cuánt[oa]s) (\w+)"
)
#: What ends the words that say what is asked for.
_PARTS = re.compile(
    r"\b(?:of|for|in|on|at|to|by|from|with|about|per|do|does|did|is|are|was|were|can|may|must|has|have|had|der|des|du|"
    r"de|del|von|für|im|auf|la|le|el|los|las|les|en)\b"
)
_BY = re.compile(r"\b(?:[Bb]y|von|par|por|da)\b(?=\W{0,4}[^\W\d_a-z])")
_NAME = re.compile(r"[^\W\d_a-z][\w'’-]*\.?(?: (?:[a-z]{1,3} )?[^\W\d_a-z][\w'’-]*\.?)+")  # noqa: RUF001
_CAPITAL = re.compile(r"(?<=[^\W_] |[,:(] )[^\W\d_a-z][\w'’-]+")  # noqa: RUF001
_DIGIT = re.compile(r"\d")
_PLAIN_WORD = re.compile(r"[^\W_]+")
_STOP = re.compile(r"[.!?;:|]")
_PLAIN = ASKING | frozenset(map(stem_of, STOP_WORDS))
_TITLE_STEMS = frozenset(map(stem_of, TITLES))
#: How many words after a number what it counts may stand.
_NEAR = 3


class Wanted:
    """What a question asks for, and its words that count."""

    def __init__(self, asked: Asked) -> None:
        question = asked.question
        common = frozenset(map(stem_of, common_in(question)))
        stems = [stem_of(word) for word in words_of(question)]
        if asked.needs:
            counting = [*(stem for stem in stems if stem in asked.weights), *asked.weights]
        else:
            counting = [stem for stem in stems if stem not in common | _PLAIN]
        #: The stems of the words that count.
        self.content = [stem for stem in dict.fromkeys(counting) if stem not in _TITLE_STEMS]
        self.needs = asked.needs
        self._ask(question, is_measured=asked.measure is not None)
        self.likes = {stem: asked.likes_of(stem) for stem in self.content}
        begin = _ASKS.match(question)
        self.is_who = _ASKS_WHO.search(question) is not None
        how = begin[1].split()[1:] if begin and begin[1].startswith("how ") else []
        self.how = frozenset(map(stem_of, how))
        # What says what is asked for: "deadline" of "what is the deadline for claims".
        parts = (
            [stem for stem in map(stem_of, words_of(part)) if stem in self.likes]
            for part in _PARTS.split(question[begin.end() if begin else 0 :])
        )
        self.first = next(filter(None, parts), self.content)
        words = _PLAIN_WORD.findall(question)
        self.words = frozenset((*words, *map(stem_of, words), *(str(ORDER[word]) for word in words if word in ORDER)))
        self.like = self.words.union(*self.likes.values())
        self.like_first = frozenset[str]().union(*(self.likes[stem] for stem in self.first))
        self.named = frozenset(stem_of(word) for need in asked.needs for word in words_of(need.text))
        #: For each word with an opposite, the stems of one side and of the other.
        self.opposites = [
            (side, other)
            for pair in OPPOSITES
            for side, other in (pair, pair[::-1])
            if not side.isdisjoint(stems) and other.isdisjoint(stems)
        ]

    def _ask(self, question: str, *, is_measured: bool) -> None:
        """Find the kinds of words and amounts that it asks for."""
        #: The kinds of words that it asks for, and what has one.
        self.kinds = [(kind, has) for kind, asks, has in _KINDS if asks.search(question)]
        self.is_meaning = any(kind == "means" for kind, _ in self.kinds)
        self.is_number = not is_measured and _ASKS_NUMBER.search(question) is not None
        read = reading_of(question)
        #: The amounts that it has, which may be in a range.
        self.amounts = [each for each in read.quantities if each.unit]
        #: The numbers that it has in words, which name nothing by themselves: "the five-board shelf".
        self.spelled = [each for at, each in read.counted if not read.tokens[at].has_digit and each.value > 1]
        many = _HOW_MANY.search(question)
        self.counts = likes_of(stem_of(many[1])) if many and many[1] not in UNITS else frozenset[str]()

    def values(self, scored: Scored) -> Iterator[tuple[str, float]]:
        """Yield whether a statement has the kind of word or amount that is asked for."""
        text = scored.statement.text
        low = text.lower()
        yield from ((kind, float(has.search(low) is not None)) for kind, has in self.kinds)
        if self.is_who:
            yield "by", float(_BY.search(text) is not None)
            if self.has_person(text):
                yield "person", 1.0
            elif not self.may_have_person(text):
                yield "nobody", 1.0
        if self.is_number:
            yield "numberless", float(not (_DIGIT.search(text) or reading_of(text).counted))
        if self.counts:
            yield "counted", float(self.counts_in(text))
        if self.is_meaning:
            head = reading_of(scored.statement.head or scored.statement.heads)
            yield "defined", float(any(is_in(need, head) for need in self.needs))
        yield from self.amounts_of(scored)

    def amounts_of(self, scored: Scored) -> Iterator[tuple[str, float]]:
        """Yield whether a statement has the amounts of the question, or ranges of such amounts."""
        if self.spelled:
            found = frozenset[Quantity]().union(*(reading.quantities for reading in scored.statement.scope))
            yield "spelled", sum(each.is_in(found) for each in self.spelled) / len(self.spelled)
            yield "otherwise", float(bool(found) and not any(each.is_in(found) for each in self.spelled))
        bounds = reading_of(scored.statement.text).bounds if self.amounts else []
        # The unit of a row's range may be in its heading; a sentence's range without one is of something else.
        bare = "" if scored.statement.may_lack_units(0) else None
        fits = [each.has(amount) for each in bounds for amount in self.amounts if each.unit in (amount.unit, bare)]
        if fits:
            yield "within" if any(fits) else "outside", 1.0

    def fit_of(self, name: str) -> int:
        """Return how well a heading or name fits what is asked for; words used for its words count less."""
        stems = set(map(stem_of, _PLAIN_WORD.findall(name.lower())))
        first = [stem for stem in self.first if stem not in self.named]
        own = sum(stem in stems for stem in first) + sum(is_in(need, reading_of(name)) for need in self.needs)
        likes = sum(
            not self.likes[stem].isdisjoint(stems) or any(are_of_one_root(stem, other) for other in stems)
            for stem in first
        )
        return 2 * own + likes + (not self.counts.isdisjoint(stems))

    def is_blank(self, statement: Statement) -> bool:
        """Return whether what is asked for is empty: below each heading, or beside each name, that has its words."""
        if statement.kind not in ("row", "record"):
            return False
        if statement.kind == "record":
            pairs = [(key, value.strip(' "')) for key, value in PAIR.findall(statement.text)]
        elif "  " in statement.text and "|" not in statement.text:
            # Which cell is below which heading isn't sure where spaces set columns apart.
            return False
        else:
            filled = (statement.around or ("",))[0]
            cells = ((head, filled.partition(f"{head}: ")[2]) for head in statement.heads.split(" | "))
            pairs = [(head, cell.partition("; ")[0]) for head, cell in cells]
        # A cell with words of the question says which row it is.
        asked = [(key, value) for key, value in pairs if self.words.isdisjoint(_PLAIN_WORD.findall(value.lower()))]
        # Where no heading has a first word of the question, one of which it has all words.
        fits = [self.fit_of(key) for key, _ in asked]
        fits = fits if any(fits) else [int(bool(stems_of(key)) and stems_of(key) <= self.like) for key, _ in asked]
        values = [value.lower() for fit, (_, value) in zip(fits, asked, strict=True) if fit == max(fits) > 0]
        return bool(values) and all(value in EMPTY for value in values)

    def has_person(self, text: str) -> bool:
        names = (_PLAIN_WORD.findall(match[0].lower()) for match in _NAME.finditer(text))
        return any(not self.words.issuperset(name) for name in names)

    def may_have_person(self, text: str) -> bool:
        return any(match[0].lower() not in self.words for match in _CAPITAL.finditer(text))

    def counts_in(self, text: str) -> bool:
        """Return whether a text has a number of what the question counts: "seven tiles"."""
        reading = reading_of(text)
        for at, _ in reading.counted:
            for token in reading.tokens[at + 1 : at + 1 + _NEAR]:
                if _STOP.search(reading.text, reading.tokens[at].end, token.start):
                    break
                if stem_of(token.low) in self.counts:
                    return True
            # "cumin | 45 g"
            if at and stem_of(reading.tokens[at - 1].low) in self.counts:
                return True
        return False

    def is_opposed(self, stems: Collection[str]) -> bool:
        """Return whether a statement has only the opposite of a word of the question: "maximum" for "minimum"."""
        return any(side.isdisjoint(stems) and not other.isdisjoint(stems) for side, other in self.opposites)
