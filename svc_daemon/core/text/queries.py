"""Queries: parses what people type into words, each with the ways in which it can stand in a text."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice, pairwise

from svc_daemon.core.dates import numbered
from svc_daemon.core.spellings import spellings_in
from svc_daemon.core.text.folding import fold, normalize
from svc_daemon.core.text.languages import asking_in, common_of_query
from svc_daemon.core.text.pieces import Part, TextUnit, TextUnitKind, cut_piece, fit, numbers
from svc_daemon.core.text.terms import (
    CAPITAL,
    EXACT,
    SIGNS,
    SPELLED_OUT,
    Alternative,
    QueryWord,
    is_marked,
    place_terms,
    spell,
    wholes_of,
)
from svc_daemon.core.text.words import spell_otherwise, words_of

#: Maximum number of words of a query; the first words of a pasted text are enough.
MAX_WORDS = 64
#: What a common word that doesn't decide weighs, and a sign such as %.
LITTLE = 0.1
#: Weights of alternatives: spelled exactly so; the word unstemmed; the whole for each of its parts; apart or joined
#: otherwise than in the query; a number by its parts; some part only.
SPELLED, UNSTEMMED, WHOLE, JOINED, APART, SOME = 1.3, 1.2, 1.5, 0.9, 0.6, 0.3
#: Maximum number of pieces between blanks that are read, the rest being only counted, and of phrases.
MOST_READ, MOST_PHRASES = 500, 16
#: Most words of a phrase that an alternative asks for.
MOST_TERMS = 8
#: Maximum number of words whose spellings are kept.
MOST_SPELLED = 2_000
#: Maximum length of a word that may be two others joined.
LONGEST_JOINED = 24
#: Single letters that are joined with the words after them, as in e-mail and t-shirt.
_LETTERS_BEFORE = "ehtux"
#: Words after which a single letter is a name.
_LABELED = (
    "annex appendix category chapter class column exhibit figure grade group hepatitis level model option part phase "
    "plan point row schedule section series size step table team track type version vitamin"
)
_LABELS = frozenset(_LABELED.split())
#: Common words that are joined to others: set up, on line.
_PARTICLES = frozenset(("down", "in", "off", "on", "out", "over", "under", "up"))
#: Capitals of those who know query languages.
_OPERATORS = frozenset(("and", "or", "not"))
_PIECE = re.compile(r"\S+")
_QUOTED = re.compile(
    r'(?<!\w)"([^"]+)"(?!\w)|“([^“”]+)[“”]|„([^„“”]+)[“”]|«([^«»]+)»|»([^«»]+)«|「([^「」]+)」|『([^『』]+)』'
)
#: What is before a string in code: `log("text")`, `name="text"`, `["text"]`.
_BEFORE_STRING = re.compile(r"""(?:[\w)\]][(\[{]|[=:,\[{\\]|["']: |\w = )\Z""")
#: A number of several groups of digits with blanks between them.
_SPACED = re.compile(r"(?<![\w.,])\d{1,3}(?:(?:\s\d{3}){2,}(?:[.,]\d+)?|\s\d{3}[.,]\d\d)(?!\w)")


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """The distinct words of a query in the order typed, and its quoted phrases."""

    words: tuple[QueryWord, ...]
    #: For each phrase the runs of terms of `Terms.words`, one of which must occur: languages differ in their stems.
    phrases: tuple[tuple[tuple[str, ...], ...], ...] = ()
    #: The runs of terms of `Terms.words` that the whole query is, one for each way to read it; none if it has a phrase.
    runs: tuple[tuple[str, ...], ...] = ()
    #: The forms of the numbers in groups, codes and dates in it, which texts have however they are written.
    spelled: tuple[str, ...] = ()
    #: How many words beyond `MAX_WORDS` were ignored.
    words_left_out: int = 0


@dataclass(slots=True)
class _Word:
    """A word while the query is read."""

    text: str
    #: Weights by terms, and whether these are forms.
    alternatives: dict[tuple[tuple[str, ...], bool], float] = field(default_factory=dict)
    #: Whether it is a common word, and whether it decides all the same.
    is_common: bool = False
    decides: bool = False

    def add(self, weight: float, *terms: str, in_forms: bool = False) -> None:
        key = (terms, in_forms)
        if weight > self.alternatives.get(key, 0.0):
            self.alternatives[key] = weight

    def add_either(self, weight: float, term: str) -> None:
        """Add a term that texts may have as a word or as a form."""
        self.add(weight, term)
        self.add(weight, term, in_forms=True)

    def decide(self) -> None:
        """Let the word decide, where it is written in capitals."""
        self.decides = True
        for terms, in_forms in self.alternatives:
            self.alternatives[terms, in_forms] *= SOME
        self.add(1.0, CAPITAL + self.text, in_forms=True)


@dataclass(frozen=True, slots=True)
class _QueryReader:
    """Reads the words of a query."""

    #: The languages of the index, and "" for texts without stems.
    languages: tuple[str, ...]
    #: The common words of the query's language.
    common: Collection[str]
    #: Whether words in capitals are written so on purpose.
    has_capitals: bool

    def read(self, piece: str, *, is_first: bool) -> Iterator[_Word]:
        """Find the words of a piece between two blanks, which may be the first of the query."""
        for unit in cut_piece(piece):
            if unit.kind is TextUnitKind.UNSPACED:
                yield from self.read_unspaced([part.text for part in unit.parts])
            elif unit.kind is TextUnitKind.SYMBOL:
                yield _Word(unit.parts[0].text, {((unit.parts[0].text,), False): 1.0}, is_common=True)
            elif unit.kind is TextUnitKind.WORD:
                yield self.read_part(unit.parts[0], is_first)
            else:
                yield from self.read_compound(unit, piece, is_first)

    def read_compound(self, unit: TextUnit, piece: str, is_first: bool) -> Iterator[_Word]:
        """Find words that are joined: each between two signs is one, and is found by the whole too.

        Numbers, dates, words with a single letter such as e-mail, and AT&T are one.
        """
        groups = [[unit.parts[0]]]
        for before, part in pairwise(unit.parts):
            sign = normalize(piece[before.end : part.start])[0]
            letters = [len(each.text) == 1 and each.text.isalpha() for each in (before, part)]
            is_one = sign in ("", "&") or (sign == "-" and any(letters)) or (sign == "/" and all(letters))
            if is_one or (before.text.isdecimal() and part.text.isdecimal()):
                groups[-1].append(part)
            else:
                groups.append([part])
        if len(groups) == 1 or unit.is_initials or any(numbered(unit.whole)):
            yield self.read_whole(unit)
            return
        for group in groups:
            inner = piece[group[0].start : group[-1].end]
            for word in [self.read_part(group[0], is_first)] if len(group) == 1 else self.read(inner, is_first=False):
                for language in self.languages:
                    # The other forms of what has digits are numbers in it.
                    for whole in wholes_of(unit, language)[: 1 if unit.has_digits else None]:
                        word.add(WHOLE, whole, in_forms=True)
                    if unit.whole.isalnum():
                        word.add(1.0, spell(unit.whole, language)[0])
                yield word

    def read_unspaced(self, parts: Sequence[str]) -> list[_Word]:
        pairs = [first + second for first, second in pairwise(parts)] or [*parts]
        asking = [*asking_in("".join(parts))]
        # A pair with a part of what only asks says nothing either.
        words = [
            _Word(fit(pair), is_common=any(start < at + len(pair) and at < end for start, end in asking))
            for at, pair in enumerate(pairs)
        ]
        for word in words:
            word.add(1.0, word.text)
            if len(parts) == 1:
                word.add(1.0, word.text, in_forms=True)
        return words

    def read_digits(self, part: Part) -> _Word:
        plain, written = fold(part.text), fit(part.zeros + part.text)
        bare, word = plain.lstrip("0") or "0", _Word(part.zeros + part.text)
        word.add(1.0, fit(plain))
        # Groups of digits, and digits after zeros, are forms of the number.
        word.add(SPELLED if part.zeros else JOINED, written, in_forms=True)
        word.add(JOINED, fit(plain), in_forms=True)
        if bare == plain and 4 <= len(plain) <= LONGEST_JOINED and not part.zeros:
            word.add(JOINED, *group_digits(plain))
        elif bare != plain:
            word.add(APART, fit(bare))
        return word

    def read_part(self, part: Part, is_first: bool) -> _Word:
        text = part.text
        if text.isdecimal():
            return self.read_digits(part)
        word = _Word(text, dict(_spell_all(text, self.languages)), is_common=text in self.common)
        if is_marked(part) and text not in _OPERATORS and not (is_first and len(text) == 1):
            word.add(SPELLED, CAPITAL + text, in_forms=True)
            if self.has_capitals:
                word.decide()
        return word

    def read_whole(self, unit: TextUnit) -> _Word:
        """Find what is one although it has parts: 1.0.21, 5kg, e-mail, JavaScript."""
        word = _Word(unit.whole)
        letters = [part.text for part in unit.parts if part.text[0].isalpha()]
        same = {*numbers(unit.whole), unit.whole.removeprefix("v")}
        for language in self.languages:
            first, *others = wholes_of(unit, language)
            word.add(SPELLED, first, in_forms=True)
            for other in others:
                is_same = not unit.has_digits or other in same
                word.add(1.0 if is_same else SOME, other, in_forms=True)
            if not unit.has_digits:
                joined = "".join(part.text for part in unit.parts) if unit.is_initials else unit.whole
                word.add_either(1.0, spell(joined, language)[0])
            if len(unit.parts) <= MOST_TERMS:
                run = [spell(part.text, language)[0] for part in unit.parts]
                word.add(1.0 if letters else APART, *run)
                word.add(APART, *(term.lstrip("0") or "0" for term in run))
        for number in numbers(unit.whole):
            word.add(1.0, number, in_forms=True)
            if number.isdecimal():
                word.add(1.0, number)
            whole, _, rest = number.partition(".")
            if len(number) < LONGEST_JOINED and whole.isdecimal():
                # Groups of digits with blanks between them.
                word.add(JOINED, *group_digits(whole), *filter(None, (rest,)))
        return word


def group_digits(digits: str) -> list[str]:
    """Split a number into groups of three digits."""
    first = len(digits) % 3
    return [*filter(None, (digits[:first],)), *(digits[start : start + 3] for start in range(first, len(digits), 3))]


@lru_cache(MOST_SPELLED)
def _spell_all(text: str, languages: tuple[str, ...]) -> dict[tuple[tuple[str, ...], bool], float]:
    """Find the ways in which a word of letters may be written, and the weight of each."""
    plain, word = fold(text), _Word(text)
    word.add(1.0, fit(plain))
    for language in languages:
        term, forms = spell(text, language)
        word.add(1.0, term)
        word.add(1.0, spell(plain, language)[0])
        # What is joined in a text is a form there, and stemmed. A word that is its own stem is no form of itself.
        word.add(JOINED, term, in_forms=True)
        word.add(JOINED if term == plain else UNSTEMMED, fit(plain), in_forms=True)
        for form in forms:
            word.add(SPELLED if form.startswith(EXACT) else 1.0, form, in_forms=True)
        if text != plain:
            word.add(JOINED, spell(fold(text.translate(SPELLED_OUT)), language)[0])
        if plain.strip(SIGNS) != plain and len(plain.strip(SIGNS)) > 1:
            word.add(SOME, spell(plain.strip(SIGNS), language)[0])
    for other, language in spell_otherwise(text, languages):
        word.add(JOINED, spell(other, language)[0])
    return word.alternatives


def parse_query(text: str, languages: Collection[str] = ("en",)) -> ParsedQuery:
    """Split a query into its distinct words. `languages` are those of the texts that are searched.

    A word that is in almost every text weighs little, unless the query has no others, or it is written as a name.
    """
    common = common_of_query(words_of(text), languages)
    reader = _QueryReader(tuple(dict.fromkeys((*languages, ""))), common, any(map(str.islower, text)))
    words: dict[str, _Word] = {}
    before: _Word | None = None
    text = _SPACED.sub(lambda match: re.sub(r"\s", "", match[0]), text)
    spelled = spellings_in(text.upper() if text.isascii() else text)
    pieces = text.split()
    for match in islice(_PIECE.finditer(text), MOST_READ):
        piece = match[0]
        read = list(reader.read(piece, is_first=not words))
        for form in (form for each in spelled if each.touches(*match.span()) for form in each.forms):
            for word in read:
                word.add_either(JOINED, form)
        is_plain = len(read) == 1 and len(read[0].text) == len(piece)
        if read and before:
            _read_together(reader, before, read[0], is_plain)
        before = read[0] if is_plain else None
        for word in read:
            first = words.setdefault(word.text, word)
            if first is not word:
                first.decides |= word.decides
                for (terms, in_forms), weight in word.alternatives.items():
                    first.add(weight, *terms, in_forms=in_forms)
    chosen, left_out = _choose([*words.values()])
    left_out += len({*map(str.lower, pieces[MOST_READ:])} - words.keys() - common)
    phrases = tuple(_read_phrases(text, reader.languages))
    runs = () if phrases or len(pieces) > MOST_TERMS else tuple(_list_runs(pieces, reader.languages))
    return ParsedQuery(
        tuple(chosen),
        phrases,
        tuple(run for run in runs if 1 < len(run) <= MOST_TERMS),
        tuple(dict.fromkeys(form for each in spelled for form in each.forms)),
        left_out,
    )


def deciding_words(text: str) -> tuple[str, ...]:
    """List the distinct words of a query that decide what it finds, as hits name them."""
    return tuple(word.text for word in parse_query(text).words if word.weight > LITTLE)


def _read_together(reader: _QueryReader, first: _Word, second: _Word, is_plain: bool) -> None:
    """Let a letter after a word such as `vitamin` decide, and find two words where they are written as one."""
    if first.text in _LABELS and len(second.text) == 1 and second.is_common and not second.decides:
        second.decide()
    if not is_plain:
        return
    joined = first.text + second.text
    if joined.isdecimal() and len(first.text) <= 3 == len(second.text):
        for word in (first, second):
            word.add_either(JOINED, joined)
    common = [word.text for word in (first, second) if word.is_common]
    if joined.isalpha() and 4 <= len(joined) <= LONGEST_JOINED and (not common or {*common} < _PARTICLES):
        for word in (first, second):
            word.add(JOINED, fold(joined), in_forms=True)
            for language in reader.languages:
                word.add_either(JOINED, spell(joined, language)[0])


def _choose(words: Sequence[_Word]) -> tuple[list[QueryWord], int]:
    """Return the words that a query may have, those that decide first of all, and how many of these are left out."""
    is_all = all(word.is_common and not word.decides for word in words)
    deciding = [is_all or word.decides or not word.is_common for word in words]
    room = {True: MAX_WORDS, False: max(0, MAX_WORDS - sum(deciding))}
    chosen = []
    for word, decides in zip(words, deciding, strict=True):
        if room[decides]:
            room[decides] -= 1
            ways = tuple(Alternative(*key, weight) for key, weight in word.alternatives.items())
            chosen.append(QueryWord(word.text, 1.0 if decides else LITTLE, ways))
    return chosen, max(0, sum(deciding) - MAX_WORDS)


def _read_phrases(text: str, languages: Iterable[str]) -> Iterator[tuple[tuple[str, ...], ...]]:
    """Read what must occur as it is quoted. Strings in code ask for nothing, and a text of several lines was pasted."""
    if "\n" in text.strip():
        return
    for match in islice(_QUOTED.finditer(text), MOST_PHRASES):
        if _BEFORE_STRING.search(text, 0, match.start()):
            continue
        if ways := tuple(_list_runs(match[match.lastindex or 0].split()[:MAX_WORDS], languages)):
            yield ways


def _list_runs(pieces: Sequence[str], languages: Iterable[str]) -> dict[tuple[str, ...], None]:
    """List the runs of terms that stand for these pieces of a text in one language or another."""
    # Words that are joined by hyphens or capitals may stand as one in a text.
    wholes = ["".join(unit.whole or " " for unit in cut_piece(piece)) for piece in pieces]
    joined = [whole if whole.isalpha() else piece for whole, piece in zip(wholes, pieces, strict=True)]
    runs = (
        tuple(each.term for piece in way for each in place_terms(piece, language) if not each.in_forms)
        for way in (pieces, joined)
        for language in languages
    )
    return dict.fromkeys(run for run in runs if run)


def splits(word: str, languages: Collection[str] = ("en",)) -> list[Alternative]:
    """List the ways in which a word of a query may stand in a text as two, such as `data base`.

    Most of them mean nothing: use those of which both words occur.
    """
    if not 5 <= len(word) <= LONGEST_JOINED or not word.isalpha():
        return []
    cuts = [cut for cut in range(1, len(word) - 1) if cut > 1 or word[0] in _LETTERS_BEFORE]
    ways = (
        (spell(word[:cut], language)[0], spell(word[cut:], language)[0])
        for cut in cuts
        for language in (*languages, "")
    )
    return [Alternative(way, False, JOINED) for way in dict.fromkeys(ways)]
