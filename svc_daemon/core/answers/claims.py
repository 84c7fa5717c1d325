"""Decides whether the passages that a sentence of an answer cites can support it.

A sentence counts as supported unless:

* it shares too few words with the passages;
* it has a number, unit, code, date or name that the statements which it repeats don't have;
* it denies what they say, or says what they deny.

What a sentence means is not understood: other words for a thing may be right or wrong.
"""

# ruff: noqa: RUF001 - letters of many scripts look alike

import re
from bisect import bisect_right
from collections.abc import Collection, Sequence
from decimal import Decimal
from functools import cached_property
from itertools import accumulate

from svc_daemon.core.answers.likenesses import likes_of
from svc_daemon.core.answers.particulars import Need, facts_of
from svc_daemon.core.answers.passages import Passage, is_familiar
from svc_daemon.core.answers.quantities import Quantity
from svc_daemon.core.answers.statements import Statement, reading_of, statements_of
from svc_daemon.core.text.sentences import Span
from svc_daemon.core.text.words import STOP_WORDS, stem_of, stems_of, words_of

#: At least this share of a sentence's words must be in the cited passages.
SUPPORT = 0.25
#: A sentence repeats the statements that have at least this share of the most words that any has of it.
REPEATED = 0.7
#: Whether a sentence denies is only judged against a statement that has at least this share of its words.
CLOSE = 0.7

#: A longer clause is not supported: a model repeats itself endlessly.
LONGEST_CLAUSE = 2000

_WORD = re.compile(r"\w+")
_CLAUSE = re.compile(r"[;:]\s+|,\s+(?:and|but|while|whereas|or)\s+|\s+(?:but|while|whereas)\s+")
#: Another form of a name: `Norwegian` for `Norway`.
_OF_PLACE = re.compile(r"(\w{3,}?)(?:wegian|ian|ean|ese|ish|an|ic)")
_PART = re.compile(r"[,;:]\s+(?!unless|except|without)|\s+but\s+")
#: Words with "not" that set a limit, and deny nothing.
_LIMITS = re.compile(r"\b(?:no|not|never)\s+(more|less|fewer|later|earlier|longer|only|exceed|before|until)\w*")
_DENIAL = re.compile(
    r"\b(?:not|no|never|nobody|nothing|none|neither|nor|without|cannot|unless|except|nowhere|hardly|non|exclud\w+|"
    r"free of|for free)\b|n['’]t\b"
    r"|\b(?:kein\w*|nicht|nie|niemals|ohne|pas|jamais|sans|nunca|sin|não|nem|non|mai|senza|niet|geen|nooit|zonder|inte|"
    r"weder|aucune?|ningun[oa]?|ningún|nessun[oa]?|ikke|aldrig|bez|żad\w+|не|нет|без|ни|нельзя|никогда|δεν|μην?|χωρίς|"
    r"değil|yok|لا|لم|لن|ليس|غير|بدون|לא|אין|אסור|ללא)\b"
)
#: Words that turn a sentence into its opposite if one stands for the other.
_OPPOSITES = (
    "allow permit may must, forbid forbidden prohibit ban; open, close shut; before, after; most, least; above over, "
    "below under; more, less; increase rise raise, reduce decrease fall lower; mandatory required compulsory, "
    "optional; possible able, impossible unable; accept, reject refuse; enable, disable; first, last; "
    "encrypted, unencrypted; "
    "paid, unpaid; valid, invalid; lock, unlock; maximum, minimum; start, stop; left, right; up, down; safe, unsafe "
    "dangerous; legal, illegal; visible, invisible; "
    "geöffnet offen, geschlossen; ouvert ouverte ouverts, fermé fermée fermés; abierto abierta, cerrado cerrada; "
    "aperto aperta, chiuso chiusa; gesloten dicht, open; otwarty otwarta otwarte, zamknięty zamknięta zamknięte; "
    "открыт открыта открыто, закрыт закрыта закрыто; erlaubt gestattet zulässig, verboten untersagt unzulässig; "
    "autorisé autorisée permis, interdit interdite; permitido permitida, prohibido prohibida; permesso consentito, "
    "vietato; toegestaan, verboden; dozwolone wolno, zabronione; разрешено разрешается, запрещено запрещается; "
    "mindestens, höchstens; inkl inklusive, zzgl zuzüglich exkl exklusive; brutto, netto"
)


_PAIRS = [tuple(frozenset(map(stem_of, side.split())) for side in pair.split(", ")) for pair in _OPPOSITES.split("; ")]
_PAIRED = frozenset[str]().union(*(stems for pair in _PAIRS for stems in pair))


class Reference:
    """A passage that an answer may cite, with the statements to check the answer against."""

    def __init__(self, passage: Passage) -> None:
        self.passage = passage

    @cached_property
    def stems(self) -> frozenset[str]:
        """Return the stems of the passage, its title and its headings, without stop words."""
        return stems_of(self._whole)

    @cached_property
    def statements(self) -> list[Statement]:
        """Return the passage's statements in order; at least one."""
        text = self.passage.text
        return statements_of(self.passage) or [Statement(span=Span(0, len(text)), text=text, kind="prose")]

    def closest(self, stems: Collection[str]) -> Span:
        """Return the span of the statement that has the most of these stems; on a tie, of the first statement."""
        return max(self.statements, key=lambda each: len(_own(each).intersection(stems))).span

    def find(self, quotation: str) -> Span | None:
        """Return the first span that contains the quotation's words in sequence, ignoring punctuation."""
        spans, starts, joined = self._run
        found = joined.find(f" {' '.join(words_of(quotation))} ")
        if found < 0:
            return None
        first = bisect_right(starts, found) - 1
        return Span(spans[first].start, spans[first + len(words_of(quotation)) - 1].end)

    @property
    def _whole(self) -> str:
        return f"{self.passage.context} {self.passage.text}"

    @cached_property
    def _run(self) -> tuple[list[Span], list[int], str]:
        """Return each word's span in the passage, each word's offset in the joined text, and the joined text.

        The joined text is the passage's words in lower case, with single spaces between them.
        """
        matches = list(_WORD.finditer(self.passage.text))
        words = [match[0].lower() for match in matches]
        starts = list(accumulate((len(word) + 1 for word in words), initial=0))
        return [Span(*match.span()) for match in matches], starts, f" {' '.join(words)} "


def _own(statement: Statement) -> frozenset[str]:
    return reading_of(statement.text).words | reading_of(statement.heads).words


def is_borne_out(sentence: str, references: Sequence[Reference], question: str) -> bool:
    """Return whether the passages that the sentence cites (`references`) can support it."""
    return is_close(sentence, references) and not changes_of(sentence, references, question)


def is_about(needs: Sequence[Need], references: Sequence[Reference]) -> bool:
    """Return whether the passages have what the question names; of alternatives, one is enough.

    An amount ("after 5 years") may be a condition that the answer doesn't depend on. But 5 weeks answer nothing about
    4 weeks.
    """
    statements = [statement for reference in references for statement in reference.statements]
    units = {amount.unit for statement in statements for amount in reading_of(statement.text).quantities}
    for need in needs:
        alternatives = [each for each in needs if each.group == need.group]
        is_loose = isinstance(need.value, Quantity) and need.value.unit not in units
        if not is_loose and not any(statement.covers(each) for each in alternatives for statement in statements):
            return False
    return True


def is_close(sentence: str, references: Sequence[Reference]) -> bool:
    """Return whether the sentence shares enough words with the passages to be compared with them."""
    stems = stems_of(sentence)
    shared = [stem for stem in stems if any(stem in reference.stems for reference in references)]
    return len(shared) >= max(1, SUPPORT * len(stems))


def changes_of(sentence: str, references: Sequence[Reference], question: str) -> list[str]:
    """Return what a sentence has that the passages don't say, such as a number, or a clause that denies them."""
    statements = [statement for reference in references for statement in reference.statements]
    asked = {(need.kind, need.value) for need in facts_of(question)} if question else set()
    return [change for clause in _clauses(sentence) for change in _changes_in(clause, statements, asked)]


def _clauses(sentence: str) -> list[str]:
    """Return the clauses that say something by themselves; others belong to the one before."""
    clauses: list[list[str]] = [[]]
    size = 0
    for clause in _CLAUSE.split(sentence):
        own = len(stems_of(clause))
        if size > 1 and own > 1:
            clauses.append([])
            size = 0
        clauses[-1].append(clause)
        size += own
    return [", ".join(parts) for parts in clauses]


def _changes_in(clause: str, statements: Sequence[Statement], asked: Collection[object]) -> list[str]:
    if len(clause) > LONGEST_CLAUSE:
        return [clause[:LONGEST_CLAUSE]]
    facts = [need for need in facts_of(clause) if (need.kind, need.value) not in asked]
    words = stems_of(clause).difference(*(stems_of(need.text) for need in facts))
    found = []
    for each in statements:
        lacks = [need for need in facts if not _has(each, need)]
        had = sum(need.kind != "quantity" and need not in lacks for need in facts)
        found.append((lacks, _share(words, each) + had, each))
    most = max(share for _, share, _ in found)
    lacking = [each for each in found if each[1] >= REPEATED * most]
    # Of rows that differ in names and numbers alone, the one with those of the clause is repeated.
    lacking.sort(key=lambda each: (len(each[0]), -each[1]))
    missing, _, statement = lacking[0]
    missing = [need for need in missing if not _is_elsewhere(need, facts, statement, statements)]
    missing += _renamed(clause, statement)
    if missing:
        return [need.text for need in missing]
    plain = words - _PAIRED - {"accord"}
    best = [each for lacks, _, each in lacking if len(lacks) == len(lacking[0][0])]
    close = [each for each in best if _share(plain, each, 1.0) >= CLOSE * max(1, len(plain))]
    return [clause] if close and all(_denies(clause, plain, each) for each in close) else []


def _renamed(clause: str, statement: Statement) -> list[Need]:
    """Return the first word of a clause if it is a name that stands where the statement has another."""
    said, written = (reading_of(text).tokens for text in (clause, statement.text))
    if not said or not written or any(written[0].low == token.low for token in said):
        return []
    first, old = said[0], written[0]
    is_name = all(
        each.text[0].isupper() and each.text.isalpha() and not is_familiar(each.text) and each.low not in STOP_WORDS
        for each in (first, old)
    )
    is_known = any(stem_of(first.low) in reading.words for reading in statement.scope)
    return [] if not is_name or is_known else [Need(first.text, "name", first.low)]


def _share(words: frozenset[str], statement: Statement, context: float = 0.5) -> float:
    """Return how many of the words the statement has; those of what it belongs to count in part."""
    own = _own(statement)
    around = frozenset[str]().union(*(reading.words for reading in statement.scope[1:]))
    return sum(
        1.0 if word in own else 0.8 if not likes_of(word).isdisjoint(own) else context if word in around else 0.0
        for word in words
    )


def _has(statement: Statement, need: Need) -> bool:
    if statement.has(need):
        return True
    value = need.value
    if need.kind == "name" and isinstance(value, str) and (match := _OF_PLACE.fullmatch(value)):
        return any(word.startswith(match[1]) for reading in statement.scope for word in reading.spelled)
    if isinstance(value, str):
        label = re.match(r"\D+", value)
        if need.kind != "label" or not label or any(label[0] in reading.labels for reading in statement.scope):
            return False
        # "has 5 files" isn't about a thing that is called "has 5".
        numbers = reading_of(value[label.end() :]).quantities
        value = next(iter(numbers), Quantity(Decimal(-1)))
    for place, reading in enumerate(statement.scope):
        amounts = (each for each in reading.amounts if each.unit or not value.unit or statement.may_lack_units(place))
        if any(value.equals(each) for each in amounts):
            return True
    return False


def _is_elsewhere(need: Need, facts: Sequence[Need], repeated: Statement, statements: Sequence[Statement]) -> bool:
    """Return whether another statement has what the repeated one lacks, and it stands for nothing else.

    A sentence may join two statements. But if the repeated one has a number that the sentence lacks, the sentence has
    another in its place.
    """
    own = [fact for fact in facts_of(repeated.text) if fact.kind == need.kind]
    if any(all(fact.value != each.value for each in facts) for fact in own):
        return False
    return any(_has(each, need) for each in statements)


def _denies(clause: str, plain: frozenset[str], statement: Statement) -> bool:
    """Return whether exactly one of a clause and a statement denies the other."""
    parts = _PART.split(statement.text)[::-1]
    nearest = max(parts, key=lambda part: len(plain & reading_of(part).words))
    if _PART.search(clause) or 2 * len(plain & reading_of(nearest).words) < len(plain):
        nearest = statement.text
    texts = [clause.lower(), nearest.lower()]
    # "Not more than" sets a limit, unless the other says "more than".
    limits = [{limit[1] for limit in _LIMITS.finditer(text)} for text in texts]
    for limit in limits[0] ^ limits[1]:
        if not all(limit in text for text in texts):
            texts = [
                _LIMITS.sub(lambda found, only=limit: " " if found[1] == only else found[0], text) for text in texts
            ]
    denials = sum(len(_DENIAL.findall(text)) for text in texts)
    said, written = (reading_of(text).words for text in texts)
    for one, other in _PAIRS:
        for first, second in ((one, other), (other, one)):
            if not first.isdisjoint(said) and first.isdisjoint(written) and not second.isdisjoint(written):
                denials += second.isdisjoint(said)
    return denials % 2 == 1
