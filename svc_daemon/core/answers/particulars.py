"""Particulars: what names one thing and not its near-twin, such as numbers, codes, dates, quoted words and names.

3-2 is another valve than 3-4, release 2.1.12 is not 2.1.2, 18 °C below zero is not 18 °C, and contract 4 is not
contract 40. `needs_of` finds what a question names, and `facts_of` what a sentence says.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from itertools import combinations, pairwise, takewhile
from typing import NamedTuple

from svc_daemon.core.answers.lines import OPTION
from svc_daemon.core.answers.passages import is_familiar
from svc_daemon.core.answers.quantities import ABOVE_IT, BELOW_IT, UNITS, Quantity
from svc_daemon.core.answers.readings import (
    LINKS,
    ORDINAL,
    RANGE,
    Reading,
    TextToken,
    code_of,
    label_of,
)
from svc_daemon.core.dates import DAY_NAMES, DOTTED_DATE, FOREIGN_NAMES, ISO_DATE, MONTHS, numbered
from svc_daemon.core.spellings import Spelling, spellings_in
from svc_daemon.core.text.languages import COMMON, common_in, guess_language
from svc_daemon.core.text.words import STOP_WORDS, stem_of, words_of

_TITLE_WORD = re.compile(r"[^\W\d_]+")
#: The folders and the ending of a title.
_NAME_ONLY = re.compile(r".*/|\.[a-z]\w{0,4}$")
#: Titles of near-twins differ in at most so many words.
_MOST_APART = 2
_QUOTED = re.compile(r"“([^”“]+)”|\"([^\"]+)\"|«([^«»]+)»|„([^„“”]+)[“”]|(?<!\w)‘([^‘]+?)’(?!\w)")  # noqa: RUF001
#: What stands before a word that isn't the first of a sentence.
_WITHIN = re.compile(r"(?:[\w,;)'’\"”-]|\b(?:Dr|Mr|Mrs|Ms|Prof|St)\.)\s*$")  # noqa: RUF001
#: Longest abbreviation of a word, such as `dept` for department.
_LONGEST_SHORT = 4
_POSSESSIVE = re.compile(r"['’]s?$")  # noqa: RUF001
_LETTERS_FIRST = re.compile(r"([^\W\d_]+)(\d.*)")
#: Words that a number follows without being named by them.
_PLAIN = (
    "and or to than least most exactly cost costs take takes weigh weighs last lasts pay paid worth year circa "
    "approximately around nearly almost just every each plus minus equals exceed exceeds reach first last next"
)
_NO_LABELS = frozenset(_PLAIN.split())
TITLES = frozenset(("dr", "mr", "mrs", "ms", "prof", "st", "mx", "sir"))
NO_NAMES = STOP_WORDS | TITLES | set("celsius fahrenheit temp max min avg qty approx i'm i've i'd i'll".split())  # noqa: SIM905
#: Ages of those who ask or are asked about, which are conditions and name nothing.
_AGES = re.compile(r"\b(?:I['’]?m|I am|aged|age) \d+|\d+[- ]years?[- ]olds?\b", re.IGNORECASE)  # noqa: RUF001
#: Days and months, which name something in lower case too, unless they mean something else.
_OFTEN_DATED = frozenset(("may", "march"))
_DATED = frozenset([*DAY_NAMES, *(f"{day}s" for day in DAY_NAMES), *MONTHS]) - _OFTEN_DATED
#: Verbs that only a sentence has in lower case, and not a title.
_VERBS = frozenset("is are was were do does did has have had can may must will".split())  # noqa: SIM905
#: Words of German questions, in which capitals don't show names.
_GERMAN = frozenset(
    "der das ist wie wer welche welcher welches wann wird im für von und ein eine einen ich sie um ab zum zur meine "  # noqa: SIM905
    "unser unsere wieviel".split()
)
#: The spelling of a number in groups that is of a phone, a card or an account, and no amount, date or range.
_IDENTIFIER = re.compile(r"(?:[a-z]{2}\d\d\w{10}|0\d{6}|\d{10})\w*\Z")


class Need(NamedTuple):
    """A particular that what answers a question must have."""

    #: As the question spells it.
    text: str
    #: `code`, `label`, `quantity`, `day`, `quoted`, `option`, `name`, or `spelled`, which has spellings as its value.
    kind: str
    value: str | Quantity
    #: A part of it that every text which has it has, in lower case; empty if that isn't sure.
    key: str = ""
    #: Needs of one group are alternatives, such as the two contracts that a question compares.
    group: int = 0
    #: The word after a number, which it may belong to: "the rent 9 Quay Road".
    beside: str = ""
    #: 1 if more than the amount is asked about, -1 if less is.
    side: int = 0


def facts_of(text: str) -> list[Need]:
    """Return what a sentence says of a thing: its needs, and the numbers that it spells in words, but not "one"."""
    # An option may stand above the words that are quoted. And less than 20 °C is another amount than less than -20 °C.
    kept = (need for need in needs_of(text) if need.kind not in ("quoted", "option"))
    reading, needs = Reading(text), [need._replace(side=0) for need in kept]
    spelled = [(at, each) for at, each in reading.counted if not reading.tokens[at].has_digit and each.value > 1]
    rates = [token.low for before, token in pairwise(reading.tokens) if before.low == "per" and token.low in UNITS]
    facts = [Need(reading.tokens[at].text, "quantity", each) for at, each in spelled]
    return needs + facts + [Need(f"per {unit}", "quantity", Quantity(Decimal(1), UNITS[unit])) for unit in rates]


def needs_of(question: str) -> list[Need]:
    """Return what an answer must have, in the order of the question: numbers and codes, quoted words and names."""
    reading = Reading(question)
    found: list[tuple[int, Need]] = []
    taken: set[int] = set()
    for match in _QUOTED.finditer(reading.text):
        quoted = next(filter(None, match.groups()))
        inside = [at for at, token in enumerate(reading.tokens) if match.start() < token.start < match.end()]
        taken.update(inside)
        found.append((inside[0] if inside else 0, Need(quoted, "quoted", Reading(quoted).joined)))
    for start, end, forms in identifiers_in(reading):
        inside = [at for at, token in enumerate(reading.tokens) if start <= token.start < end and at not in taken]
        if inside:
            taken.update(inside)
            found.append((inside[0], Need(reading.text[start:end], "spelled", " ".join(forms))))
    for match in OPTION.finditer(reading.text):
        inside = [at for at, token in enumerate(reading.tokens) if match.start() < token.end <= match.end()]
        taken.update(inside)
        found.append((inside[0] if inside else 0, Need(match[0], "option", match[0])))
    for match in _AGES.finditer(reading.text):
        taken.update(at for at, token in enumerate(reading.tokens) if match.start() <= token.start < match.end())
    for at in range(len(reading.tokens)):
        if at not in taken and (day := reading.day_at(at)):
            taken.update(range(at, at + day[2]))
            text = reading.text[reading.tokens[at].start : reading.tokens[at + day[2] - 1].end]
            found.append((at, Need(text, "day", f"{day[0]:02}-{day[1]:02}")))
    found += [pair for pair in _numbers_in(reading) if pair[0] not in taken]
    taken.update(at for at, _ in found)
    found += [pair for pair in _names_in(reading) if pair[0] not in taken]
    return _grouped(reading, sorted(found, key=lambda pair: pair[0]))


def _numbers_in(reading: Reading) -> Iterator[tuple[int, Need]]:
    """Yield the codes and numbers of a question, with the index of each one's token."""
    tokens, counted = reading.tokens, dict(reading.counted)
    label, spelled = "", ""
    common = COMMON.get(guess_language(reading.text), STOP_WORDS) | STOP_WORDS | _NO_LABELS
    for at, token in enumerate(tokens):
        if not token.is_code:
            if token.low not in ("and", "or") and token.low not in LINKS:
                is_plain = token.low in common and not (at and token.text.isupper())
                is_label = token.text == "§" or not is_plain
                label, spelled = (label_of(token.low), token.text) if is_label else ("", "")
            continue
        quantity = counted.get(at)
        word = _POSSESSIVE.sub("", token.text)
        text = _POSSESSIVE.sub("", reading.written[token.start : token.end])
        if iso := ISO_DATE.fullmatch(token.text):
            month, day = (iso[2], iso[3]) if iso[1] else (iso[5], iso[4])
            yield at, Need(text, "day", f"{int(month):02}-{int(day):02}")
        elif dotted := DOTTED_DATE.match(reading.text, token.start):
            yield at, Need(text, "day", f"{int(dotted[2]):02}-{int(dotted[1]):02}")
        elif quantity is None or RANGE.fullmatch(token.text):
            yield at, Need(text, "code", code_of(word))
        elif quantity.unit or token.sign:
            shown = f"{text} {tokens[at + 1].text}" if reading.unit_at(at + 1) else text
            before = reading.low[: token.start]
            side = bool(ABOVE_IT.search(before)) - bool(BELOW_IT.search(before))
            yield at, Need(shown, "quantity", quantity, side=side)
        elif ORDINAL.fullmatch(token.text) and at + 1 < len(tokens):
            yield at, Need(f"{text} {tokens[at + 1].text}", "label", f"{label_of(tokens[at + 1].low)}{quantity.value}")
        elif label and token.text.isdecimal() and not re.fullmatch(r"(?:19|20)\d\d", token.text):
            follows = tokens[at + 1].low if at + 1 < len(tokens) else ""
            beside = follows if follows.isalpha() and follows not in STOP_WORDS else ""
            yield at, Need(f"{spelled} {text}", "label", f"{label}{code_of(token.text)}", beside=beside)
        else:
            yield at, Need(text, "quantity", quantity)


def _names_in(reading: Reading) -> Iterator[tuple[int, Need]]:
    """Yield the capitalized names within the sentences of a question; the words of one name follow each other."""
    plain = [token for token in reading.tokens if token.text[0].isalpha() and token.low not in STOP_WORDS]
    lows = {token.low for token in reading.tokens}
    # In a title or in German, capitals don't show which words are names.
    is_title = len(plain) > 3 and all(token.text[0].isupper() for token in plain)
    has_verb = any(token.text in _VERBS for token in reading.tokens)
    foreign: Mapping[str, str] = FOREIGN_NAMES if common_in(reading.text) else {}
    if (is_title and not has_verb) or lows & _GERMAN:
        dated = ((at, foreign.get(token.low, "")) for at, token in enumerate(reading.tokens))
        yield from ((at, Need(reading.tokens[at].text, "name", name)) for at, name in dated if name)
        return
    run: list[str] = []
    for at, token in enumerate([*reading.tokens, TextToken(".", "", len(reading.text), 0, ".")]):
        word = _POSSESSIVE.sub("", token.text)
        follows = reading.tokens[at + 1].text if at + 1 < len(reading.tokens) else ""
        # The letter of "Block D" may be a stop word.
        is_name = (
            word[:1].isupper()
            and not (token.is_code or (word == "I" and follows.islower()))
            and not (at and token.low in UNITS and reading.tokens[at - 1].has_digit)
            and (word.lower() not in NO_NAMES or (bool(run) and len(word) == 1))
        )
        begins = follows[:1].isupper() and follows.isalpha() and not is_familiar(word)
        if run and "-" in word and word.isupper():
            # "The Warrior G-BXTW" has two names.
            yield at - len(run), Need(" ".join(run), "name", " ".join(run).lower())
            run = []
        if is_name and (_WITHIN.search(reading.text[max(0, token.start - 9) : token.start]) or begins):
            run.append(word)
        elif run:
            yield at - len(run), Need(" ".join(run), "name", " ".join(run).lower())
            run = []
        if run and word != token.text:
            # "Hanna Berg's TSH" are two names.
            yield at + 1 - len(run), Need(" ".join(run), "name", " ".join(run).lower())
            run = []
        elif not run and (day := _dated_at(reading, at, follows, foreign)):
            yield at, Need(token.text, "name", day)


def _dated_at(reading: Reading, at: int, follows: str, foreign: Mapping[str, str]) -> str:
    """Return the day of the week or the month that a token is, if any."""
    if at == len(reading.tokens):
        return ""
    token, before = reading.tokens[at], reading.tokens[at - 1] if at else None
    return foreign.get(token.low, token.low if token.low in _DATED or _is_month(token, before, follows) else "")


def _is_month(token: TextToken, before: TextToken | None, follows: str) -> bool:
    """Return whether a word that also means something else is a month: "in May", "may 2024"."""
    if token.low not in _OFTEN_DATED:
        return False
    is_after = before is not None and before.low in ("in", "of", "since", "until", "by", "during", "last", "next")
    return follows.isdecimal() or (token.text[0].isupper() and is_after)


def _grouped(reading: Reading, found: Sequence[tuple[int, Need]]) -> list[Need]:
    """Give one group to needs of one kind that "and", "or" or a comma joins: "contracts 7 and 9"."""
    needs: list[Need] = []
    before = -1
    for place, (at, need) in enumerate(found):
        between = reading.tokens[before + 1 : at] if before >= 0 else []
        is_joined = any(token.low in ("and", "or", "vs", "versus") for token in between) and len(between) <= 3
        is_alternative = needs and is_joined and needs[-1].kind == need.kind
        sure = need.value if need.kind in ("code", "label", "name") and isinstance(need.value, str) else ""
        key = max(re.findall(r"\d+" if need.kind != "name" else r"\w+", sure), key=len, default="")
        # A text may have a month as a number, a day within a range, and "2nd" in words.
        is_sure = (_DATED | _OFTEN_DATED).isdisjoint(sure.split()) and not ORDINAL.match(need.text)
        key = key.removesuffix("s") if is_sure else ""
        needs.append(need._replace(group=needs[-1].group if is_alternative else place, key=key))
        before = at
    return needs


def identifiers_in(reading: Reading) -> list[Spelling]:
    """List the numbers of phones, cards and accounts in a text, the longest first."""
    whole = [Spelling(each.start, each.end, (each.low, each.low.lstrip("0"))) for each in reading.tokens]
    found = (each for each in (*spellings_in(reading.text), *whole) if _IDENTIFIER.match(each.forms[0]))
    # 03.03.2024 is none.
    others = (each for each in found if not any(numbered(reading.text[each.start : each.end])))
    return sorted(others, key=lambda each: each.start - each.end)


@lru_cache(maxsize=1024)
def spelled_in(reading: Reading) -> frozenset[str]:
    """Return the spellings of the numbers of phones, cards and accounts in a text."""
    return frozenset(form for each in identifiers_in(reading) for form in each.forms)


@lru_cache(maxsize=8192)
def is_in(need: Need, reading: Reading, *, has_units: bool = True) -> bool:
    """Return whether a text has a particular. Unless it `has_units`, its numbers without a unit may have any."""
    if isinstance(need.value, Quantity):
        return _is_amount_in(need, need.value, reading, has_units=has_units)
    if need.kind == "option":
        return re.search(rf"(?<![\w-]){re.escape(need.value)}(?![\w-])", reading.text) is not None
    if need.kind == "spelled":
        return not spelled_in(reading).isdisjoint(str(need.value).split())
    if need.kind in ("quoted", "day"):
        return need.value in (reading.joined if need.kind == "quoted" else reading.days)
    if need.kind == "name":
        return bool(reading.has_name(need.value.split()))
    return (
        need.value in reading.codes
        or (need.kind == "label" and _is_named_with(need, reading))
        or any(need.key in code and _is_short_for(need.value, code) for code in reading.codes)
    )


def _is_amount_in(need: Need, amount: Quantity, reading: Reading, *, has_units: bool) -> bool:
    """Return whether a text has the number of a need, or the end of a code that this is."""
    if not amount.unit and "." in need.text:
        # 2001.2 may be the number of a thing, and 2001.20 that of another.
        return need.text.removeprefix("+") in reading.codes
    bounds = [each for each in reading.bounds if each.unit == amount.unit] if need.side else []
    if bounds:
        # "Up to 10 kg" says nothing of more than 10 kg.
        return any(each.goes_on(amount, need.side) for each in bounds)
    found = frozenset(
        each for each in reading.quantities if (each.unit or not amount.unit) and (amount.unit or not each.unit)
    )
    if not has_units and amount.unit and not any(each.unit == amount.unit for each in reading.quantities):
        # A whole cell or value may have its unit in another place, but "1 in 5 people" are no 5 mg.
        ends = ((reading.text[reading.tokens[at].end :].lstrip()[:1], each) for at, each in reading.counted)
        found |= frozenset(each for end, each in ends if not each.unit and (not end or end in ";|,)\t"))
    # A number may be the end of a code: 2031 of INV-2031.
    is_code = any(code.removesuffix(need.text).isalpha() for code in reading.codes if code.endswith(need.text))
    return amount.is_in(found) or (not amount.unit and is_code)


def may_be_named(need: Need, text: str) -> bool:
    """Return whether a need is one, where a text was found: what only has a dash before it is no option."""
    is_plain = need.kind != "option" or len(need.text) == 2 or need.text.startswith("--")
    return is_plain or need.text in text


def is_within(need: Need, reading: Reading) -> bool:
    """Return whether a text has a range with the amount that is asked about: "over 20 kg" for 27 kg."""
    if not isinstance(need.value, Quantity) or not need.value.unit:
        return False
    bounds = [each for each in reading.bounds if each.unit == need.value.unit]
    if need.side:
        return any(each.goes_on(need.value, need.side) for each in bounds)
    return any(each.has(need.value) for each in bounds)


def is_in_part(need: Need, titles: Sequence[str], lines: Sequence[str], first: str) -> bool:
    """Return whether one line or title has the words of a name apart, or a number without the word it belongs to.

    The `first` word of the question may be no part of the name.
    """
    if need.kind == "name" or (need.kind == "code" and need.text.islower() and need.text.isascii()):
        parts = re.split(r"[-./_ ]+", need.value if isinstance(need.value, str) and need.kind == "name" else need.text)
        words = {part for part in parts if part and (len(part) == 1 or part not in NO_NAMES) and part != first}
        # A letter alone is another word's: the C of "c'est".
        return max(map(len, words), default=0) > 1 and any(words <= set(words_of(line)) for line in (*titles, *lines))
    if need.kind != "label":
        return False
    number = re.escape(need.text.rpartition(" ")[2].lower())
    numbered = re.compile(rf"\b(?:no\.?|nr\.?|nummer|number|n[uú]m[eé]ro|#):? ?0*{number}\b")
    return any(re.search(rf"\b0*{number}\b", title) for title in titles) or any(map(numbered.search, lines))


@lru_cache(maxsize=8192)
def is_alone(name: str, text: str) -> bool | None:
    """Return whether a text has a name that no common word makes longer, as in Basic Plus; None if it lacks the name.

    Names of files have no capitals, so each word in them counts.
    """
    found = list(re.finditer(rf"(?<![^\W_]){re.escape(name)}(?![^\W_])(?:[ _-](\w+))?", text, re.IGNORECASE))
    is_low = text.islower()
    longer = [
        bool(match[1])
        and (match[1][0].isupper() or (is_low and match[1] not in STOP_WORDS))
        and match[1].isalpha()
        and len(match[1]) > 1
        and (is_low or is_familiar(match[1]) or match[1].lower() == "plus")
        for match in found
    ]
    return not all(longer) if found else None


def _is_named_with(need: Need, reading: Reading) -> bool:
    """Return whether a number belongs to the name after it, as in 5 Mere Close, which people may turn round."""
    word, _, number = need.text.rpartition(" ")
    if need.beside and f" {number} {need.beside} " in reading.joined:
        return True
    found = re.search(rf"\b{re.escape(number)} (?:[A-Z]\w* )?([A-Z]\w*)", reading.text)
    return bool(found) and bool(word) and word.lower() in (found[0].lower().split()[1:] if found else [])


def _is_short_for(one: str, other: str) -> bool:
    """Return whether two codes differ only in that one has an abbreviation: `inv2031` for `invoic2031`."""
    pairs = [_LETTERS_FIRST.fullmatch(code) for code in (one, other)]
    if not all(pairs):
        return False
    (short, number), (long, same) = sorted((pair.groups() for pair in pairs if pair), key=lambda pair: len(pair[0]))
    letters = iter(long)
    is_short = len(short) <= _LONGEST_SHORT < len(long) and short[0] == long[0]
    return number == same and is_short and all(letter in letters for letter in short)


def _count_same(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many words at the beginning are the same."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _are_twins(one: Sequence[str], other: Sequence[str]) -> bool:
    begin = _count_same(one, other)
    end = _count_same(one[begin:][::-1], other[begin:][::-1])
    apart = max(len(one), len(other)) - begin - end
    return apart <= _MOST_APART and apart <= begin + end


def told_by_titles(question: str, needs: Sequence[Need], titles: Sequence[str]) -> tuple[bool, frozenset[str]]:
    """Return whether the first title has a near-twin or words of the question tell a title from its twins, and these.

    These are "canal" of fenwick-canal beside fenwick-railway. Titles are near-twins if they differ only in a word or
    two beside each other, and have at least as many in common. Words of several titles only compare them.
    """
    asked = set(words_of(question)) - STOP_WORDS - {word for need in needs for word in words_of(need.text)}
    listed = (_TITLE_WORD.findall(_NAME_ONLY.sub("", title.lower())) for title in titles)
    names = list(dict.fromkeys(tuple(word for word in words if word not in STOP_WORDS) for words in listed))
    twins = [(set(one), set(other)) for one, other in combinations(names, 2) if _are_twins(one, other)]
    told = {frozenset(asked & (one - other)) for pair in twins for one, other in (pair, pair[::-1])}
    best = max(map(len, told), default=0)
    found = [words for words in told if len(words) == best]
    has_twin = any(set(names[0]) in pair for pair in twins)
    return has_twin or best > 0, frozenset(map(stem_of, found[0] if len(found) == 1 else ()))
