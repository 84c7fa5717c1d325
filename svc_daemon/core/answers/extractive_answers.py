"""Answers questions without a model: quotes the best statements of the passages found, each with a citation mark.

A statement answers only if it has what the question names (`particulars`): a near-twin's is another thing's. Among
those, the likeliest is quoted (`chances`), if its chance is high enough. Where documents are not alike and the question
names nothing, sentences are scored by the words that they share with it, and table rows, code and headings get lower
scores than prose.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations

from svc_daemon.core.answers.candidates import Asked, Place, Scored
from svc_daemon.core.answers.chances import Judge
from svc_daemon.core.answers.likenesses import are_of_one_root
from svc_daemon.core.answers.particulars import Need
from svc_daemon.core.answers.passages import MANY, RARE, Citation, Passage, chance_of
from svc_daemon.core.answers.statements import Statement, reading_of, statements_of
from svc_daemon.core.answers.wanted import Wanted
from svc_daemon.core.text.languages import without_asking
from svc_daemon.core.text.sentences import cost_of, fences_of
from svc_daemon.core.text.words import stem_of, words_of

#: The answer if nothing was found.
NOTHING_FOUND = "I found nothing about this in the sources."
#: Maximum number of sentences in an answer.
MOST_SENTENCES = 3
#: Maximum number of statements that are shown as related, if none answers.
MOST_RELATED = 3
#: Each sentence after the best one needs at least this fraction of the best score.
WORTHY = 0.85
#: Used instead of `WORTHY` for a sentence with a word of the question that the chosen sentences lack.
WORTHY_OF_MORE = 0.5
#: The statements quoted answer with at least this chance: a wrong answer costs more than a right one is worth.
SURE = 0.93
#: The same if the question names something, and no more than so many statements may answer.
FEW, SURE_OF_FEW = 2, 0.6
#: The same if it names nothing and has no word that tells near-twins apart; and if the likeliest statement is also the
#: one that shares the most words with it.
SURE_OF_NAMELESS, SURE_OF_AGREED = 0.85, 0.3
#: At least this in a question that isn't in English, for which fewer words are known.
SURE_ELSEWHERE = 0.9
#: A statement that says another value of one thing, or answers another part of the question, is quoted too if its
#: chance is at least this fraction of the best one's.
AS_SURE, SURE_OF_MORE = 0.1, 0.05
#: Nothing is quoted if another value has at least this fraction of the best one's chance, where what is named is only
#: elsewhere in the document.
RIVAL = 0.05
#: A sentence that is better by this comes before the others of its passage.
CLEARLY = 0.05
#: Two statements say different things of one if at least this part of their words is the same.
ALIKE = 0.7


@dataclass(frozen=True, slots=True)
class Quoted:
    """A piece of the answer: a sentence quoted from a source, followed by a citation mark."""

    text: str
    citation: Citation


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotedAnswer:
    """What the passages say about a question."""

    pieces: tuple[Quoted, ...] = ()
    #: What the question names, and rare words of it, that the answer lacks.
    unmatched: tuple[str, ...] = ()
    #: Whether the answer has all that the question names.
    is_whole: bool = True
    #: The question, if it names something and nothing answers.
    unanswered: "Asked | None" = field(default=None, repr=False)
    #: Whether each thing that the question names is somewhere in the passages.
    knows_all: bool = True
    #: The nearest statements, best first, to show if none answers.
    nearest: tuple[Citation, ...] = ()
    warnings: tuple[str, ...] = ()


def quote_best(
    question: str, searched: str, passages: Sequence[Passage], worthy: Sequence[bool] = (), chunks: int = 0
) -> QuotedAnswer:
    """Return what the passages, ordered best first, say about a question.

    Every piece but the first begins with a space. `searched` is the question with words from the conversation. Passages
    that aren't `worthy` answer only a question that names a thing that they have, or if the best has a near-twin, or
    one for a value where the team has `MANY` chunks or more.
    """
    asked = Asked(question, searched, passages)
    worthy = worthy or [True] * len(passages)
    is_judged = asked.names_things or asked.has_twins or (chunks >= MANY and asked.asks_for_value)
    near, lacked = _find(
        asked, passages, [asked.may_be_about(at) for at in range(len(passages))] if is_judged else worthy
    )
    scored = asked.score_all(near)
    found = [each for each in scored if worthy[each.passage] and not lacked]
    chosen = [] if is_judged and asked.needs else _choose(asked, passages, found)
    if is_judged and not lacked:
        best = max(chosen, key=lambda each: each.worth, default=None)
        chosen, scored = choose_surest(asked, passages, worthy, scored, best)
    differ = any(
        _differ(one, other) and all(asked.is_met(need, one) == asked.is_met(need, other) for need in asked.needs)
        for one, other in combinations(chosen, 2)
    )
    unmatched = _unmatched(asked, chosen, lacked)
    if asked.is_elsewhere or (unmatched and not asked.needs and differ):
        # What it asks about isn't there, or a word that tells near-twins apart is nowhere.
        scored, chosen = chosen, []
    if not chosen:
        silent = QuotedAnswer(unmatched=unmatched, is_whole=False, nearest=tuple(related_to(asked, scored)))
        whole = " ".join(f"{passage.context} {passage.text}" for passage in passages).lower()
        knows_all = all(need.key in whole for need in asked.needs)
        return replace(silent, knows_all=knows_all, unanswered=asked if asked.needs and lacked else None)
    warnings = ("The sources differ: read each quote and its place.",) if differ else ()
    is_whole = all(any(asked.is_met(need, each) for each in chosen) for need in asked.needs)
    pieces = list(_pieces(chosen))
    return QuotedAnswer(pieces=tuple(pieces), unmatched=unmatched, is_whole=is_whole, warnings=warnings)


def _find(
    asked: Asked, passages: Sequence[Passage], is_read: Sequence[bool]
) -> tuple[list[tuple[int, Statement]], list[Need]]:
    """Return the statements of the passages to read, each with its passage; or of a few, and what the nearest lack.

    Most passages lack what the question names; a few of them are enough to show what is related.
    """
    if read := [at for at, each in enumerate(is_read) if each]:
        return [(at, each) for at in read for each in statements_of(passages[at])], []
    few = range(min(MOST_RELATED, len(passages)))
    return asked.nearest((at, each) for at in few for each in statements_of(passages[at]))


def related_to(asked: Asked, scored: Sequence[Scored]) -> Iterator[Citation]:
    """Yield the nearest statements, to show if none answers."""
    shown = [each for each in scored if each.statement.kind != "line" or each.statement.heads or not asked.needs]
    related = [each for each in shown if asked.needs or each.covered > 0]
    for number, each in enumerate(related[:MOST_RELATED], 1):
        yield Citation(number=number, passage=each.passage, span=each.span, index=0)


def choose_surest(
    asked: Asked, passages: Sequence[Passage], worthy: Sequence[bool], found: Sequence[Scored], best: Scored | None
) -> tuple[list[Scored], list[Scored]]:
    """Return the statements to quote, none if it isn't likely enough that they answer, and all, the likeliest first.

    If the question names nothing, `best` is the one that shares the most words with it.
    """
    judged = zip(found, (each.shown.lower() for each in found), Judge(asked, found, worthy).chances(), strict=True)
    chances: dict[str, float] = {}
    likely: list[tuple[Scored, str, bool]] = []
    for each, shown, chance in judged:
        chances[shown] = chances.get(shown, 0.0) + chance
        likely.append((each, shown, chance > 0))
    # The same words may be said of another thing: "severity: high".
    likely.sort(key=lambda one: (not asked.is_whose(one[0]), -chances[one[1]], not one[2], one[0].passage, one[0].span))
    ranked = [each for each, *_ in likely]
    chosen, has_rival = ranked[:1], False
    quoted = {shown for _, shown, _ in likely[:1]}
    most = max(chances.values(), default=0.0)
    for each, shown, may_be in likely[1:]:
        is_one = asked.needs or passages[each.passage].title == passages[chosen[0].passage].title
        part = chances[shown] / max(most, 1e-9) if may_be else 0.0
        # Of another document, the same with another value.
        has_rival |= not is_one and part >= AS_SURE and _differ(each, chosen[0])
        is_more = len(chosen) < MOST_SENTENCES and part > 0
        # Of one document that has what is named elsewhere, so which of the two is meant isn't known.
        has_rival |= part >= RIVAL and bool(each.apart) and _differ(each, chosen[0])
        if is_more and ((may_be and shown in quoted) or adds(asked, each, chosen, part, is_one=bool(is_one))):
            chosen.append(each)
            quoted.add(shown)
    sure = sum(chances[shown] for shown in quoted)
    is_few = sum(chance > 0 for chance in chances.values()) <= FEW
    is_agreed = best is not None and bool(ranked) and best.shown == ranked[0].shown
    if asked.needs or asked.told:
        limit = SURE_OF_FEW if asked.needs and is_few else SURE
    else:
        limit = SURE_OF_AGREED if is_agreed else SURE_OF_NAMELESS
    limit = max(limit, SURE_ELSEWHERE) if asked.forms else limit
    is_sure = (sure >= limit and not has_rival) or any(map(asked.is_whose, chosen))
    return chosen if is_sure else [], ranked


def adds(asked: Asked, each: Scored, chosen: Sequence[Scored], part: float, *, is_one: bool) -> bool:
    """Return whether a statement says of another thing asked for what the chosen don't, or another value of one."""
    lacking = [need for need in asked.needs if not any(asked.is_met(need, other) for other in chosen)]
    if any(asked.is_met(need, each) for need in lacking):
        return part > 0
    if any(_differ(each, other) for other in chosen):
        return is_one and part >= AS_SURE
    is_joined = re.search(r",| and | or ", asked.question) is not None
    covered = frozenset[str]().union(*(other.shared for other in chosen))
    return is_joined and not each.shared <= covered and part >= SURE_OF_MORE


def _choose(asked: Asked, passages: Sequence[Passage], found: Sequence[Scored]) -> list[Scored]:
    """Return the statements to quote, in the order of the answer."""
    # An abbreviation may name a thing, and another record is another one.
    near = [each for each in found if not any(place is Place.UNDER_ANOTHER for _, place in each.apart)]
    near = asked.about_options([each for each in near if not each.apart] or near)
    best = max(near, key=lambda each: each.worth, default=None)
    # A passage that only meaning has found may share no word.
    is_apart = best and not best.covered and not asked.needs and passages[best.passage].weights
    if best and (is_apart or Wanted(asked).is_blank(best.statement)):
        return []
    return _choose_best(asked, passages, asked.fitting(near))


def _choose_best(asked: Asked, passages: Sequence[Passage], scored: Sequence[Scored]) -> list[Scored]:
    fences = [fences_of(passage.text) for passage in passages]
    costed: list[Scored] = []
    best = 0.0
    # Code and headings are slow to detect, so check only statements that may be chosen.
    for each in scored:
        if best > 0 and each.worth < WORTHY_OF_MORE * best:
            break
        is_named = each.statement.kind == "field" and asked.has_key_of(each.statement)
        cost = 0.0 if is_named else cost_of(passages[each.passage].text, each.span, fences[each.passage])
        best = max(best, each.worth - cost)
        costed.append(replace(each, worth=each.worth - cost, is_prose=not cost))
    chosen: list[Scored] = []
    for each in sorted(costed, key=lambda each: (-each.worth, each.passage, each.span)):
        if len(chosen) < MOST_SENTENCES and (not chosen or _is_better_with(each, chosen)):
            chosen.append(each)
    if asked.measure:
        return chosen
    # Order passages by when they were chosen, and sentences of one passage by position.
    order = list(dict.fromkeys(each.passage for each in chosen))
    best = chosen[0].worth - CLEARLY if chosen else 0.0
    return sorted(chosen, key=lambda each: (order.index(each.passage), each.worth < best, each.span))


def _is_better_with(each: Scored, chosen: Sequence[Scored]) -> bool:
    """Return whether the statement is good enough to add: for what it adds, or for what it says differently."""
    if any(each.shown == other.shown or _differ(each, other) for other in chosen):
        return each.worth >= WORTHY_OF_MORE * chosen[0].worth
    covered = frozenset[str]().union(*(other.shared for other in chosen))
    adds_words = not each.shared <= covered
    if not each.is_prose and not adds_words:
        return False
    wanted = WORTHY_OF_MORE if adds_words and each.is_prose else WORTHY
    return each.worth >= wanted * chosen[0].worth


def _differ(one: Scored, other: Scored) -> bool:
    """Return whether two statements say different values of the same thing."""
    first, second = one.statement, other.statement
    if first.text == second.text or first.kind != second.kind or first.heads != second.heads:
        return False
    if first.kind == "field":
        return first.text.partition(":")[0] == second.text.partition(":")[0]
    words = [[token.low for token in reading_of(each.text).tokens] for each in (first, second)]
    if len(words[0]) != len(words[1]) or (first.kind == "row" and words[0][:1] != words[1][:1]):
        return False
    same = sum(a == b for a, b in zip(*words, strict=True))
    numbers = [reading_of(each.text).quantities for each in (first, second)]
    return ALIKE * len(words[0]) <= same < len(words[0]) and numbers[0] != numbers[1]


def _pieces(chosen: Sequence[Scored]) -> Iterator[Quoted]:
    """Yield the quotes; a statement that several sources have is quoted once, with the mark of each."""
    size = 0
    numbered = list(enumerate(chosen, 1))
    for first, each in numbered:
        if any(each.shown.lower() == other.shown.lower() for other in chosen[: first - 1]):
            continue
        text = f" {each.shown}" if size else each.shown
        for number, same in numbered[first - 1 :]:
            if same.shown.lower() == each.shown.lower():
                text += " "
                citation = Citation(number=number, passage=same.passage, span=same.span, index=size + len(text))
                yield Quoted(f"{text}[{number}]", citation)
                size += len(text) + len(f"[{number}]")
                text = ""


def _unmatched(asked: Asked, chosen: Sequence[Scored], lacked: Sequence[Need]) -> tuple[str, ...]:
    """Return what the question names that the answer isn't about, or if it has all, the rare words found nowhere."""
    missing = (
        [need for need in asked.needs if not any(asked.is_met(need, each) for each in chosen)] if chosen else lacked
    )
    quoted = frozenset[str]().union(*(reading.words for each in chosen for reading in each.statement.scope))
    rare = [
        word
        for word in chain.from_iterable(map(without_asking, words_of(asked.question)))
        if word in asked.nowhere
        and chance_of(stem_of(word)) == RARE
        and not any(word in need.text.lower() for need in asked.needs)
        # "Invigilates" is as good as "invigilator".
        and not any(are_of_one_root(stem_of(word), stem) for stem in quoted)
    ]
    return tuple(dict.fromkeys([*(need.text for need in missing), *rare]))
