"""Which documents a query names: by their titles, the names of their files, or the titles in their texts.

A document that is named comes first, however often others have the words of its name.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise

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
    terms, deciding = _read_name(name, language)
    if not deciding:
        return 0.0
    has = [not terms.isdisjoint(_terms(word)) for word in query.words]
    asked = [number for number, word in enumerate(query.words) if word.weight >= DECIDES]
    found = [number for number in asked if has[number]]
    own = {term for number in found for term in _terms(query.words[number])}
    covered = len(deciding & own)
    is_whole = covered == len(deciding) and (len(deciding) > 1 or len(asked) == 1)
    has_number = any(
        has[one] and has[other] and any(map(str.isdigit, query.words[one].text + query.words[other].text))
        for one, other in pairwise(asked)
    )
    has_query = len(found) == len(asked) > 1
    if not (is_whole or has_number or has_query):
        return 0.0
    return len(found) + covered / len(deciding)


def _terms(word: QueryWord) -> set[str]:
    """Return the terms of a word as a whole, as names have them: `net` is no name for `.NET`."""
    return {name_term(each) for each in word.alternatives if len(each.terms) == 1 and each.weight >= WHOLE_WORD}


@lru_cache(KEPT_NAMES)
def _read_name(name: str, language: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return all terms of a name, and the words of it that decide."""
    words = index_terms(name, language).words.split()
    return frozenset(name_terms(name, language)), frozenset(word for word in words if word not in STOP_WORDS)
