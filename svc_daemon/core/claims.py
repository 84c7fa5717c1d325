"""Claims: whether a sentence of an answer says what the passages say that it cites.

No model judges. A claim is borne out unless one of these speaks against it:

* It has too few words in common with the passages.
* It names a number that neither they nor the question have, or one of another unit than they.
* The sentence that is closest to it has another number of the same unit.
* It has a name that neither they nor the question have.
* It says `not` where the clause closest to it doesn't, or the other way round.
* It quotes what does not stand there.

A paraphrase that says something else in words of its own passes: whether it is true, its quotes let the reader see.
"""

from collections.abc import Iterable, Sequence

from svc_daemon.core.names import MOST_CAPITALS, is_known, names_of
from svc_daemon.core.polarity import clauses_of, contradicts
from svc_daemon.core.quantities import Quantity, quantities_of
from svc_daemon.core.references import Reference
from svc_daemon.core.stems import stems_of, words_of

#: The part of a sentence's words that the passages must have which it names.
SUPPORT = 0.25


def is_borne_out(sentence: str, references: Sequence[Reference], question: str) -> bool:
    """Whether nothing in the passages that the sentence cites, one at least, speaks against it."""
    return (
        _shares_words(sentence, references)
        and _has_known_codes(sentence, references, question)
        and _has_known_quantities(sentence, references, question)
        and _has_known_names(sentence, references, question)
        and not _is_contradicted(sentence, references)
    )


def _shares_words(sentence: str, references: Sequence[Reference]) -> bool:
    own = stems_of(sentence)
    shared = [stem for stem in own if any(stem in reference.stems for reference in references)]
    return len(shared) >= max(1, SUPPORT * len(own))


def _has_known_codes(sentence: str, references: Sequence[Reference], question: str) -> bool:
    """Whether words of letters and digits, such as `A4`, stand there as they are."""
    asked = words_of(question)
    return all(
        word in asked or any(word in reference.words for reference in references)
        for word in words_of(sentence)
        if _is_code(word)
    )


def _is_code(word: str) -> bool:
    """`a4`, `v2`; not `1st`, `5pm`, `30`."""
    return any(map(str.isdigit, word)) and not word[0].isdigit()


def _has_known_quantities(sentence: str, references: Sequence[Reference], question: str) -> bool:
    claimed = quantities_of(sentence)
    if not claimed:
        return True
    known = [*quantities_of(question), *(each for reference in references for each in reference.quantities)]
    return all(each.is_single or _is_known(each, known) for each in claimed) and not _is_another(
        sentence, claimed, references
    )


def _is_known(claimed: Quantity, known: Iterable[Quantity]) -> bool:
    """Whether it is there in its unit, or as a number without one."""
    return any(
        (claimed.number, claimed.kind) == (each.number, each.kind)
        or (claimed.written == each.written and None in (claimed.kind, each.kind))
        for each in known
    )


def _is_another(sentence: str, claimed: Sequence[Quantity], references: Sequence[Reference]) -> bool:
    """Whether the closest sentences have another number of a unit that the claim has."""
    close = _closest(sentence, references)
    kinds = {(each.kind, each.is_single) for each in claimed if each.kind}
    return any(bool(close) and all(_differs(kind, claimed, quantities_of(text)) for text in close) for kind in kinds)


def _closest(sentence: str, references: Sequence[Reference]) -> list[str]:
    """The sentences of the passages that share most words, numbers aside; none that share less than half."""
    own = {stem for stem in stems_of(sentence) if not stem[0].isdigit()}
    texts = [each for reference in references for each in reference.sentences]
    most = max((len(own & each.stems) for each in texts), default=0)
    return [each.text for each in texts if len(own & each.stems) == most] if most * 2 >= len(own) else []


def _differs(kind: tuple[str | None, bool], claimed: Iterable[Quantity], others: Iterable[Quantity]) -> bool:
    own = {each.number for each in claimed if (each.kind, each.is_single) == kind}
    other = {each.number for each in others if (each.kind, each.is_single) == kind}
    return bool(other) and own.isdisjoint(other)


def _has_known_names(sentence: str, references: Sequence[Reference], question: str) -> bool:
    if any(reference.share_of_capitals > MOST_CAPITALS for reference in references):
        return True
    words = frozenset(words_of(question)).union(*(reference.words for reference in references))
    return all(is_known(name, words) for name in names_of(sentence))


def _is_contradicted(sentence: str, references: Sequence[Reference]) -> bool:
    said = [clause for reference in references for clause in reference.clauses]
    return any(contradicts(clause, said) for clause in clauses_of(sentence))
