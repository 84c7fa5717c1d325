"""Terms: what a text is found by.

A text is split at its blanks. What a piece between them is found by depends on that piece alone, so it is worked out
once for each of the pieces that make up most of the texts. What is written with and without a blank, such as 5 kg, is
cut into the same words either way. Only numbers in groups, codes and dates (see `core.spellings`) go beyond a piece.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, count, pairwise
from typing import NamedTuple

from svc_daemon.core.spellings import spellings_in
from svc_daemon.core.text.folding import fold
from svc_daemon.core.text.languages import STEMMERS, stem
from svc_daemon.core.text.pieces import Part, TextUnit, TextUnitKind, cut_piece, fit, numbers
from svc_daemon.core.text.words import STOP_WORDS, words_of

#: Prefix of a form that is spelled exactly so: `=straße`.
EXACT = "="
#: Prefix of a form of a common word that is written in capitals: `^who`.
CAPITAL = "^"
#: Maximum number of pieces of texts whose terms are kept, about 20 MB, and the length of the longest ones.
MOST_PIECES, LONGEST_PIECE = 80_000, 64
#: Maximum number of words whose stems are kept.
MOST_WORDS = 20_000
#: Shorter words are one mistake away from too many others.
LEAST_LETTERS = 3
#: In a word of up to so many letters one may be mistaken, in a longer one two.
LONGEST_SHORT = 4
#: The letters that are typed for umlauts where a keyboard has none.
SPELLED_OUT = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"})
_NUMBERS = re.compile(r"\d+(?:[.,']\d+)+")
#: Signs around the letters of `.NET` and `C++`.
SIGNS = ".+#"


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a text, each list separated by spaces."""

    #: The folded stems of the words in order, one for each, so that phrases can be searched.
    words: str
    #: What else the words are found by, in no special order: unstemmed and exact spellings, what is kept whole beside
    #: its parts, single characters of scripts without spaces.
    forms: str


class Alternative(NamedTuple):
    """One way in which a word of a query can stand in a text."""

    #: One term, or several of `Terms.words` that follow each other.
    terms: tuple[str, ...]
    #: Whether the term is one of `Terms.forms`, otherwise of `Terms.words`.
    in_forms: bool
    #: 1 for the plain folded word, more for what is written exactly, less for a part.
    weight: float


@dataclass(frozen=True, slots=True)
class QueryWord:
    """A word of a query."""

    #: As shown to users: the word in lower case, or what is kept whole, such as 1.0.21.
    text: str
    #: How much the word decides: 1, or little for words such as `the`.
    weight: float
    #: The best of them that a passage has counts.
    alternatives: tuple[Alternative, ...]


class PlacedTerm(NamedTuple):
    """A term, and where it is in its piece of text."""

    term: str
    in_forms: bool
    start: int
    end: int


@lru_cache(MOST_WORDS)
def spell(word: str, language: str) -> tuple[str, tuple[str, ...]]:
    """Return the term of a word in lower case, and its other forms."""
    plain = fold(word)
    if plain.isascii() and plain.isalpha() and plain == word:
        term = stem(word, language)
        return fit(term), (fit(word),) * (term != word)
    if plain.isdecimal():
        bare = plain.lstrip("0") or "0"
        return fit(plain), (fit(bare),) * (bare != plain)
    letters = plain.strip(SIGNS)
    if letters != plain:
        # `C` isn't found by `C++`, but `disney+` by `disney`.
        bare_forms = {letters, fold(stem(letters, language))} if len(letters) > 1 else ()
        return fit(plain), tuple(map(fit, sorted(bare_forms)))
    term = fold(stem(word, language)) or plain
    # `München` is found by `Muenchen`, as it is typed where a keyboard has no umlauts.
    spelled_out = fold(word.translate(SPELLED_OUT))
    stems = (fold(stem(each, language)) for each in (plain, spelled_out))
    forms = dict.fromkeys((plain, EXACT + word, spelled_out, *stems))
    if plain == word.replace("\N{GREEK SMALL LETTER FINAL SIGMA}", "\N{GREEK SMALL LETTER SIGMA}"):
        del forms[EXACT + word]
    return fit(term), tuple(fit(form) for form in forms if form not in ("", term))


def wholes_of(unit: TextUnit, language: str) -> list[str]:
    """List the forms under which words that are joined by signs or capitals are kept as a whole."""
    if unit.has_digits:
        # The numbers in `v2.1` and `1.5GB` too.
        written = (unit.whole, *_NUMBERS.findall(unit.whole))
        found = [number for each in written for number in (each, *numbers(each))]
        return list(map(fit, dict.fromkeys(found)))
    if unit.is_initials:
        # `U.S.` is US.
        initials = "".join(part.text for part in unit.parts)
        return [unit.whole, initials, CAPITAL + initials]
    # The stem of the whole is that of its last word.
    last = unit.parts[-1].text
    stemmed = unit.whole[: len(unit.whole) - len(fold(last))] + spell(last, language)[0]
    return list(map(fit, dict.fromkeys((unit.whole, stemmed))))


def is_marked(part: Part) -> bool:
    """Whether this is a common word in capitals, such as WHO, or a letter such as the A of `vitamin A`."""
    return part.is_capital and part.text != "i" and part.text in STOP_WORDS


def place_terms(piece: str, language: str) -> Iterator[PlacedTerm]:
    """Find the terms of a text without blanks, in order."""
    for unit in cut_piece(piece):
        start, end = unit.parts[0].start, unit.parts[-1].end
        if unit.kind is TextUnitKind.SYMBOL:
            yield PlacedTerm(unit.parts[0].text, False, start, end)
            continue
        if unit.kind is TextUnitKind.UNSPACED:
            # Each two characters that follow each other, then each one.
            pairs: list[tuple[Part, ...]] = [*pairwise(unit.parts)] or [unit.parts]
            for pair in (*pairs, *((part,) for part in unit.parts if len(unit.parts) > 1)):
                term = fit("".join(part.text for part in pair))
                yield PlacedTerm(term, len(pair) < len(pairs[0]), pair[0].start, pair[-1].end)
            continue
        for part in unit.parts:
            term, forms = spell(part.text, language)
            yield PlacedTerm(term, False, part.start, part.end)
            forms = (*forms, fit(part.zeros + part.text)) if part.zeros else forms
            yield from (PlacedTerm(form, True, part.start, part.end) for form in forms)
            if is_marked(part) and (len(part.text) > 1 or unit.kind is TextUnitKind.WORD):
                yield PlacedTerm(CAPITAL + part.text, True, part.start, part.end)
        if unit.kind is TextUnitKind.COMPOUND:
            yield from (PlacedTerm(whole, True, start, end) for whole in wholes_of(unit, language))


@lru_cache(MOST_PIECES // 30)
def recall_terms(piece: str, language: str) -> tuple[PlacedTerm, ...]:
    """Do the same as `place_terms`, from memory if the piece was met lately."""
    return tuple(place_terms(piece, language))


#: Signs before and after a word that are no part of it.
_BEFORE = "\"'()[]{}<>,;:!?*`|~^\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}"
_AFTER = f"{_BEFORE}."


class _Known(dict[str, tuple[str, str]]):
    """The words and the forms of the pieces that were met lately, of one language.

    Other threads may work out the same piece: what they find is equal.
    """

    def __init__(self, language: str) -> None:
        super().__init__()
        self.language = language
        #: Those met before, from which what is met again comes back.
        self.old: dict[str, tuple[str, str]] = {}

    def __missing__(self, piece: str) -> tuple[str, str]:
        word = piece.lstrip(_BEFORE).rstrip(_AFTER)
        if word.isascii() and word.isalpha() and word[1:].islower():
            # A plain word, which most are: its signs say nothing.
            term, others = spell(word.lower(), self.language)
            found = term, " ".join(others)
        elif (kept := self.old.get(piece)) is None:
            placed = list(place_terms(piece, self.language))
            words = " ".join([each.term for each in placed if not each.in_forms])
            found = words, " ".join(dict.fromkeys([each.term for each in placed if each.in_forms]))
        else:
            found = kept
        if len(piece) <= LONGEST_PIECE:
            self[piece] = found
            if next(_MET) % _SELDOM == 0 and sum(map(len, _KNOWN.values())) >= MOST_PIECES // 2:
                for known in _KNOWN.values():
                    known.old = dict(known)
                    known.clear()
        return found


#: Counts the pieces that were worked out; how many are, until all that are kept are counted.
_MET, _SELDOM = count(), 500
_KNOWN = {language: _Known(language) for language in (*STEMMERS, "")}


def known_pieces(language: str) -> Mapping[str, tuple[str, str]]:
    """Return what maps each piece of a text in this language to its words and its forms, separated by spaces."""
    return _KNOWN.get(language, _KNOWN[""])


def index_terms(text: str, language: str) -> Terms:
    """Return what a text in this language is found by."""
    known = known_pieces(language)
    found = [*map(known.__getitem__, lower_articles(text.split()))]
    words, forms = zip(*found, strict=True) if found else ((), ())
    spelled = chain.from_iterable(spelling.forms for spelling in spellings_in(text))
    return Terms(" ".join(filter(None, words)), " ".join(filter(None, (*forms, *spelled))))


def lower_articles(pieces: Sequence[str]) -> Sequence[str]:
    """Write the article that begins a sentence in lower case: another A is a name, as in `vitamin A`."""
    places = [number for number, piece in enumerate(pieces) if piece == "A"] if "A" in pieces else ()
    if not places:
        return pieces
    lowered = [*pieces]
    for number in places:
        if number == 0 or not pieces[number - 1][-1].isalnum():
            lowered[number] = "a"
    return lowered


def may_be_mistaken(word: str) -> bool:
    """Whether a word of a query may be another one with a mistake. Numbers and names of several parts are not."""
    kinds = [unit.kind for unit in cut_piece(fold(word))]
    return kinds == [TextUnitKind.WORD] and word.isalpha() and len(word) >= LEAST_LETTERS


def count_mistakes(word: str) -> int:
    """Return how many letters of a word may be mistaken."""
    return 1 if len(word) <= LONGEST_SHORT else 2


def suggest(word: str, texts: Collection[str]) -> str | None:
    """Return the word of these texts that is nearest to a word of a query, and of several the one in most texts.

    If none is near, it is one that begins with the query's word, as the longer words of German do.
    """
    word = fold(word)
    most, letters = count_mistakes(word), set(word)
    having = Counter(chain.from_iterable({*index_terms(text, "").words.split()} for text in texts))
    near = [
        (1 if _is_near(word, term, 1) else 2, -count, term)
        for term, count in having.items()
        if abs(len(term) - len(word)) <= most and len(letters.symmetric_difference(term)) <= 2 * most
        if term != word and term.isalpha() and _is_near(word, term, most)
    ]
    if not near and len(word) > LONGEST_SHORT:
        near = [(len(term), -count, term) for term, count in having.items() if term.startswith(word) and term != word]
    if not near:
        return None
    _, _, best = min(near)
    # As the texts write it.
    return next((each for text in texts for each in words_of(text) if fold(each) == best), best)


def _is_near(one: str, other: str, mistakes: int) -> bool:
    """Whether at most so many letters are wrong, missing, too many or exchanged with the next one."""
    start, shorter = 0, min(len(one), len(other))
    while start < shorter and one[start] == other[start]:
        start += 1
    one, other = one[start:], other[start:]
    if not mistakes or not one or not other:
        return max(len(one), len(other)) <= mistakes
    return (
        _is_near(one[1:], other[1:], mistakes - 1)
        or _is_near(one, other[1:], mistakes - 1)
        or _is_near(one[1:], other, mistakes - 1)
        or (one[:2] == other[1::-1] and _is_near(one[2:], other[2:], mistakes - 1))
    )
