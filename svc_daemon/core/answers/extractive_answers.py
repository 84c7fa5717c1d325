"""Answers questions without a model: quotes the best statements of the passages found, each with a citation mark.

A statement answers only if it has what the question names (`particulars`): a near-twin's is another thing's. Among
those, it is scored by the words that it shares with the question. The words of what it belongs to count in part. Where
the question names nothing, table rows, code and headings get lower scores than prose.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from svc_daemon.core.answers.likenesses import likes_of
from svc_daemon.core.answers.particulars import Need, is_in, needs_of
from svc_daemon.core.answers.passages import ASKS_FOR_NUMBER, RARE, Citation, Passage, chance_of
from svc_daemon.core.answers.readings import label_of, measure_of
from svc_daemon.core.answers.statements import Statement, reading_of, statements_of
from svc_daemon.core.text.sentences import Span, cost_of, fences_of
from svc_daemon.core.text.words import STOP_WORDS, stem_of, stems_of, words_of

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
#: The weight of words in what a statement belongs to, compared to words in the statement itself.
CONTEXT_SHARE = 0.5
#: The weight of a word that is used for the question's word, compared to that word.
LIKE_SHARE = 0.6
#: Where the question names a thing, a statement about it must cover this much of the other words.
ENOUGH_ASKED = 0.45
#: The weight of words in the line right above a statement.
HEAD_SHARE = 0.8
#: Where the question names a thing, a statement about it that covers less of the other words answers too, if it covers
#: this much, and more than the other statements about it by a margin.
LITTLE_ASKED, MARGIN = 0.25, 0.1
#: The weight of the kind of amount that a question asks for, compared to that of a rare word.
MEASURE_SHARE = 0.75
#: Added to a sentence's score if it has the number or definition that the question asks for; subtracted if the sentence
#: is a question or heading.
HINT = 0.2
#: Subtracted from a sentence's score according to its passage's rank: 0 for the first passage, nearly this for the
#: last.
RANK = 0.1
#: The weight of the question's own words, compared to words that were added from earlier questions.
OWN = 2.0
#: Sentences with fewer words than this, such as `Yes.`, make no sense when quoted alone.
FEWEST_WORDS = 3
#: Subtracted from the score of a row or a form's line about what the question names.
NAMED_ROW = 0.08
#: Two statements say different things of one if at least this part of their words is the same.
ALIKE = 0.7

_ASKS_WHEN = re.compile(r"\bwhen\b")
#: Matches "what is X"; the group is X.
_ASKS_WHAT = re.compile(r"what(?: is|'s| are| does) (?:an? |the )?(\w[\w-]*(?: \w+)?)(?: mean)?\s*\??$")
#: The beginning of a definition; `{}` is replaced by the defined name.
_DEFINITION = r"\W*(?:an? |the )?{}\W.{{0,80}}?\b(?:is|are|means?|refers? to)\b"
_ASKING = frozenset(
    map(stem_of, ["show", "give", "list", "find", "name", "tell", "say", "please", "many", "much", "long"])
)


@dataclass(frozen=True, slots=True)
class Scored:
    """A statement of a passage, with its score."""

    passage: int
    statement: Statement
    #: Stems of the question's words that the statement contains.
    shared: frozenset[str]
    #: How much of the question it covers, 0 to 1.
    covered: float
    worth: float
    is_prose: bool = True
    #: Whether it has any of the question's words, beside what the question names.
    has_words: bool = True

    @property
    def span(self) -> Span:
        return self.statement.span

    @property
    def shown(self) -> str:
        """Return the words to quote, with what names them."""
        words, heads = " ".join(self.statement.text.split()), " ".join(self.statement.heads.split())
        return f"{words} ({heads})" if heads else words


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
    #: Whether the question names something.
    names_something: bool = False
    #: Whether each thing that the question names is somewhere in the passages.
    knows_all: bool = True
    #: The nearest statements, best first, to show if none answers.
    nearest: tuple[Citation, ...] = ()
    warnings: tuple[str, ...] = ()


class Asked:
    """A question: what it names, and the weights of its other words."""

    def __init__(self, question: str, searched: str, passages: Sequence[Passage]) -> None:
        self.question = question.lower()
        self.needs = needs_of(question) or needs_of(searched)
        self.groups = [[need for need in self.needs if need.group == group] for group in {n.group for n in self.needs}]
        own = stems_of(question)
        named = {stem_of(word) for need in self.needs for word in words_of(need.text)}
        if self.needs:
            asked = {stem for stem in (own or stems_of(searched)) if stem not in named and stem not in _ASKING}
            # In "how much is gas in zone Harbour", the zone only says what Harbour is.
            asked = (
                asked
                - {
                    label_of(match[1])
                    for need in self.needs
                    for match in re.finditer(rf"(\w+)\W+{re.escape(need.text)}", question)
                }
                or asked
            )
            self.weights: Mapping[str, float] = {stem: 1 / chance_of(stem) ** 0.25 for stem in asked}
        else:
            # A word of the question that no passage contains has no weight.
            found = {stem_of(word): weight for passage in passages for word, weight in passage.weights.items()}
            weights = found or dict.fromkeys(stems_of(searched), 1.0)
            self.weights = {stem: weight * (OWN if stem in own else 1.0) for stem, weight in weights.items()}
        self.measure = measure_of(self.question) if self.needs else None
        self.measure_weight = MEASURE_SHARE / RARE**0.25 if self.measure else 0.0
        self.total = sum(self.weights.values()) + self.measure_weight
        self.words = frozenset(own | named)
        self.wants_number = bool(ASKS_FOR_NUMBER.search(self.question) or _ASKS_WHEN.search(self.question))
        asks_what = _ASKS_WHAT.match(self.question)
        self.definition = re.compile(_DEFINITION.format(re.escape(asks_what[1]) if asks_what else "(?!)"), re.DOTALL)

    def may_be_in(self, passage: Passage) -> bool:
        """Return whether a passage can have what the question names."""
        text = f"{passage.context} {passage.lead} {passage.text}".lower()
        return all(any(need.key in text for need in group) for group in self.groups)

    def lacks(self, statement: Statement) -> list[Need]:
        """Return what the question names and the statement isn't about; alternatives only if it is about none."""
        groups = [[need for need in group if not statement.has(need)] for group in self.groups]
        return [
            need
            for lacking, group in zip(groups, self.groups, strict=True)
            for need in lacking
            if len(lacking) == len(group)
        ]

    def score(self, place: int, passages: int, statement: Statement) -> Scored:
        own, *rest = (reading.words for reading in statement.scope)
        own |= reading_of(statement.heads).words
        head = reading_of(statement.head).words
        around = frozenset[str]().union(*rest)
        worded = covered = sum(weight * self.share_of(stem, own, head, around) for stem, weight in self.weights.items())
        if self.measure and self.measure.is_in(reading_of(statement.text), reading_of(statement.heads)):
            covered += self.measure_weight
        covered = covered / self.total if self.total else 0.0
        text = statement.text.lower()
        hints = (
            (self.wants_number and any(map(str.isdigit, text)))
            + bool(self.definition.match(text))
            # "tenant: Ruiz" rather than "The tenant may keep one cat."
            + (statement.kind == "field" and stems_of(statement.text.partition(":")[0]) <= self.words)
            - ((len(text.split()) < FEWEST_WORDS and statement.kind == "prose") or text.endswith(("?", ":")))
        )
        is_another = statement.subject and not any(is_in(need, reading_of(statement.subject)) for need in self.needs)
        hints -= bool(self.needs and is_another)
        worth = covered + HINT * hints - RANK * place / passages
        return Scored(place, statement, own & self.words, covered, worth, has_words=worded > 0)

    def share_of(self, stem: str, *places: frozenset[str]) -> float:
        """Return how much of a word a statement has: itself, the line above it, or what else it belongs to."""
        shares = (1.0, HEAD_SHARE if self.needs else CONTEXT_SHARE, CONTEXT_SHARE)
        best = max((share for share, place in zip(shares, places, strict=True) if stem in place), default=0.0)
        if best == 1.0 or not self.needs:
            return best
        likes = likes_of(stem)
        like = (share for share, place in zip(shares, places, strict=True) if not likes.isdisjoint(place))
        return max(best, LIKE_SHARE * next(like, 0.0))

    def answering(self, scored: Sequence[Scored]) -> list[Scored]:
        """Return the statements, best first, that answer a question which names something.

        They cover enough of the question's other words, or they alone cover some.
        """
        about = [each for each in scored if not stems_of(each.statement.text) <= self.words]
        about = [each for each in about if each.has_words or not self.weights]
        enough = [each for each in about if not self.total or each.covered >= ENOUGH_ASKED]
        if enough or not about:
            return enough
        best = max(each.covered for each in about)
        near = [each for each in about if each.covered >= best - MARGIN]
        is_clear = best >= LITTLE_ASKED and len({each.shown.lower() for each in near}) == 1
        return near if is_clear else []

    def choose(
        self, passages: Sequence[Passage], worthy: Sequence[bool], scored: Sequence[Scored]
    ) -> tuple[list[Scored], list[Scored]]:
        """Return the statements to quote, and those that are nearest."""
        if self.needs:
            lacking = [(self.lacks(each.statement), each) for each in scored]
            answers = self.answering([each for lacks, each in lacking if not lacks])
            chosen = _choose(self, passages, answers)
            lacking.sort(key=lambda pair: (len(pair[0]), -pair[1].worth))
            fewest = len(lacking[0][0]) if lacking else 0
            near = [
                each
                for lacks, each in lacking
                if len(lacks) == fewest and (each.covered > 0 or fewest < len(self.groups))
            ]
            near = near or [each for _, each in lacking[:1]]
            related = [each for each in near if each.statement.kind != "line" or each.statement.heads][:MOST_RELATED]
        else:
            chosen = _choose(self, passages, [each for each in scored if worthy[each.passage]])
            related = [each for each in scored if each.covered > 0][:MOST_RELATED]
        return chosen, related


def quote_best(question: str, searched: str, passages: Sequence[Passage], worthy: Sequence[bool] = ()) -> QuotedAnswer:
    """Return what the passages, ordered best first, say about a question.

    Every piece but the first begins with a space. `searched` is the question with words from the conversation. Passages
    that aren't `worthy` answer only a question that names something that they have.
    """
    asked = Asked(question, searched, passages)
    worthy = worthy or [True] * len(passages)
    read = [at for at in range(len(passages)) if worthy[at] or not any(worthy)]
    if asked.needs:
        # Most passages lack what the question names; a few of them are enough to show what is related.
        read = [at for at, passage in enumerate(passages) if asked.may_be_in(passage)] or list(
            range(min(MOST_RELATED, len(passages)))
        )
    scored = [asked.score(at, len(passages), each) for at in read for each in statements_of(passages[at])]
    scored.sort(key=lambda each: -each.worth)
    chosen, related = asked.choose(passages, worthy, scored)
    differ = any(
        _differ(one, other) and all(one.statement.has(need) == other.statement.has(need) for need in asked.needs)
        for one, other in combinations(chosen, 2)
    )
    unmatched = _unmatched(asked, passages, chosen, scored)
    if unmatched and not asked.needs and differ:
        # Near-twins, and the question's word that tells them apart is nowhere.
        related, chosen = chosen, []
    if not chosen:
        nearest = tuple(
            Citation(number=at, passage=one.passage, span=one.span, index=0) for at, one in enumerate(related, 1)
        )
        whole = " ".join(f"{passage.context} {passage.text}" for passage in passages).lower()
        knows_all = all(need.key in whole for need in asked.needs)
        return QuotedAnswer(
            unmatched=unmatched, is_whole=False, knows_all=knows_all, nearest=nearest, names_something=bool(asked.needs)
        )
    warnings = ("The sources differ: read each quote and its place.",) if differ else ()
    is_whole = all(any(each.statement.has(need) for each in chosen) for need in asked.needs)
    pieces = list(_pieces(chosen))
    return QuotedAnswer(pieces=tuple(pieces), unmatched=unmatched, is_whole=is_whole, warnings=warnings)


def _choose(asked: Asked, passages: Sequence[Passage], scored: Sequence[Scored]) -> list[Scored]:
    """Return the statements to quote, in the order of the answer."""
    fences = [fences_of(passage.text) for passage in passages]
    costed: list[Scored] = []
    best = 0.0
    # Code and headings are slow to detect, so check only statements that may be chosen.
    for each in scored:
        if best > 0 and each.worth < WORTHY_OF_MORE * best:
            break
        is_named = asked.needs and each.statement.kind in ("row", "field")
        cost = NAMED_ROW if is_named else cost_of(passages[each.passage].text, each.span, fences[each.passage])
        best = max(best, each.worth - cost)
        costed.append(replace(each, worth=each.worth - cost, is_prose=not cost))
    chosen: list[Scored] = []
    for each in sorted(costed, key=lambda each: (-each.worth, each.passage, each.span)):
        if len(chosen) < MOST_SENTENCES and (not chosen or _is_better_with(asked, each, chosen)):
            chosen.append(each)
    if asked.needs:
        return chosen
    # Order passages by when they were chosen, and sentences of one passage by position.
    order = list(dict.fromkeys(each.passage for each in chosen))
    return sorted(chosen, key=lambda each: (order.index(each.passage), each.span))


def _is_better_with(asked: Asked, each: Scored, chosen: Sequence[Scored]) -> bool:
    """Return whether the statement is good enough to add: for what it adds, or for what it says differently."""
    if any(each.shown == other.shown or _differ(each, other) for other in chosen):
        return each.worth >= WORTHY_OF_MORE * chosen[0].worth
    lacking = [need for need in asked.needs if not any(other.statement.has(need) for other in chosen)]
    if any(each.statement.has(need) for need in lacking):
        return True
    covered = frozenset[str]().union(*(other.shared for other in chosen))
    adds_words = not each.shared <= covered
    if asked.needs:
        return (
            adds_words
            and bool(re.search(r",| and | or ", asked.question))
            and each.worth >= WORTHY_OF_MORE * chosen[0].worth
        )
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


def _unmatched(
    asked: Asked, passages: Sequence[Passage], chosen: Sequence[Scored], scored: Sequence[Scored]
) -> tuple[str, ...]:
    """Return what the question names that the answer isn't about, or if it has all, the rare words found nowhere."""
    if chosen:
        missing = [need.text for need in asked.needs if not any(each.statement.has(need) for each in chosen)]
    else:
        nowhere = [need.text for need in asked.needs if not any(each.statement.has(need) for each in scored)]
        nearest = min((asked.lacks(each.statement) for each in scored), key=len, default=asked.needs)
        missing = nowhere or [need.text for need in nearest]
    whole = " ".join(f"{passage.context} {passage.text}" for passage in passages).lower()
    rare = [
        word
        for word in words_of(asked.question)
        if word.isalpha()
        and word not in STOP_WORDS
        and chance_of(stem_of(word)) == RARE
        and not any(like in whole for like in likes_of(stem_of(word)))
        and not any(word in need.text.lower() for need in asked.needs)
    ]
    return tuple(dict.fromkeys([*missing, *rare]))
