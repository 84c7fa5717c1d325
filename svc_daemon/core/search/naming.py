"""Which documents a query names: by their titles, the names of their files, or the titles in their texts.

A document that is named comes first, however often others have the words of its name.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise

from svc_daemon.core.dates import MONTH_NUMBERS
from svc_daemon.core.text.queries import ParsedQuery
from svc_daemon.core.text.terms import Alternative, QueryWord, index_terms
from svc_daemon.core.text.words import STOP_WORDS

#: Most documents that a query can name. If as good names fit more, it names none.
MOST_NAMED = 3
#: The weight of a word that decides which document is meant.
DECIDES = 0.5
#: The weight of a term that is a whole word, and no mere part of it.
WHOLE_WORD = 0.9
#: Prefix of a term of a name that is a form.
FORM = "~"
#: How many names are kept, and the length of the longest of them, in characters.
KEPT_NAMES, LONGEST_NAME = 5_000, 200

_SUFFIX = re.compile(r"\.\w{1,8}$")
#: Zeros before a number, as in `pep-0008`.
_ZEROS = re.compile(r"(?<![\d.])0+(?=[1-9])")


def names_of(title: str, own_title: str) -> list[str]:
    """Return the names of a document: its title, or the last part of it if it is a path, and the title in its text.

    A number with zeros before it is also spelled without.
    """
    last = _SUFFIX.sub("", title.rstrip("/").rpartition("/")[2]) or title
    names = [name[:LONGEST_NAME] for name in (last, own_title) if name]
    return [*dict.fromkeys(spelled for name in names for spelled in (name, _ZEROS.sub("", name)))]


def name_terms(name: str, language: str) -> list[str]:
    """List the terms of a name: its words, and its forms, which are marked as such."""
    terms = index_terms(name, language)
    return [*terms.words.split(), *(FORM + form for form in terms.forms.split())]


def name_term(way: Alternative) -> str:
    """Return the term by which a name has a word of a query in this way, a single term."""
    return FORM + way.terms[0] if way.in_forms else way.terms[0]


def rate_names(query: ParsedQuery, names: Iterable[str], language: str) -> float:
    """Return how well the best of a document's names fits the query; 0 if none does."""
    return max((_rate(query, name, language) for name in names), default=0.0)


def choose_named(rated: Sequence[tuple[int, float]]) -> list[int]:
    """Return the documents with the best names; none if too many are as good."""
    best = max((rating for _, rating in rated), default=0.0)
    named = [number for number, rating in rated if rating and rating == best]
    return named if len(named) <= MOST_NAMED else []


def _rate(query: ParsedQuery, name: str, language: str) -> float:
    terms, words, deciding = _read_name(name, language)
    if not deciding:
        return 0.0
    asked = [word for word in query.words if word.weight >= DECIDES]
    has = [_find(word, terms, words) for word in asked]
    found = [own for own in has if own]
    covered = len(deciding.intersection(set().union(*found)))
    is_whole = covered == len(deciding) and (len(deciding) > 1 or len(asked) == 1)
    texts = [word.text for word in asked]
    # A word and a number, such as PEP 8, and no part of a date.
    has_number = any(
        has[one] and has[one + 1] and any(map(str.isdigit, pair)) and not pair.isdecimal()
        for one, pair in enumerate(map("".join, pairwise(texts)))
        if MONTH_NUMBERS.keys().isdisjoint(texts[max(0, one - 1) : one + 3])
    )
    has_query = len(found) == len(asked) > 1
    if not (is_whole or has_number or has_query):
        return 0.0
    return len(found) + covered / len(deciding)


def _find(word: QueryWord, terms: frozenset[str], words: str) -> set[str]:
    """Return the terms of a name that are this word of a query, as a whole: `net` is no name for `.NET`."""
    ways = [each for each in word.alternatives if each.weight >= WHOLE_WORD]
    single = {name_term(each) for each in ways if len(each.terms) == 1} & terms
    return single.union(*(each.terms for each in ways if len(each.terms) > 1 and f" {' '.join(each.terms)} " in words))


@lru_cache(KEPT_NAMES)
def _read_name(name: str, language: str) -> tuple[frozenset[str], str, frozenset[str]]:
    """Return all terms of a name, its words in order with blanks around them, and those of them that decide."""
    words = index_terms(name, language).words
    deciding = frozenset(word for word in words.split() if word not in STOP_WORDS)
    return frozenset(name_terms(name, language)), f" {words} ", deciding
