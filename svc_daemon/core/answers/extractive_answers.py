"""Answers questions without a model: quotes the best statements of the passages found, each with a citation mark.

A statement answers only if it has what the question names (`particulars`): a near-twin's is another thing's. Among
those, it is scored by the words that it shares with the question. The words of what it belongs to count in part. Where
the question names nothing, table rows, code and headings get lower scores than prose.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from svc_daemon.core.answers.likenesses import likes_of
from svc_daemon.core.answers.particulars import is_in
from svc_daemon.core.answers.passages import ASKS_FOR_NUMBER, RARE, Citation, Passage, chance_of
from svc_daemon.core.answers.questions import Question
from svc_daemon.core.answers.statements import Statement, reading_of, statements_of
from svc_daemon.core.text.sentences import Span, cost_of, fences_of
from svc_daemon.core.text.words import stem_of, stems_of, words_of

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
#: Where the question names a thing, a statement about it must cover this much of the other words.
ENOUGH_ASKED = 0.45
#: Where the question names a thing, a statement about it that covers less of the other words answers too, if it covers
#: this much, and more than the other statements about it by a margin.
LITTLE_ASKED, MARGIN = 0.25, 0.1
#: Added to a sentence's score if it has the number or definition that the question asks for; subtracted if the sentence
#: is a question or heading.
HINT = 0.2
#: Subtracted from a sentence's score according to its passage's rank: 0 for the first passage, nearly this for the
#: last.
RANK = 0.1
#: Sentences with fewer words than this, such as `Yes.`, make no sense when quoted alone.
FEWEST_WORDS = 3
#: Subtracted from the score of a row or a form's line about what the question names.
NAMED_ROW = 0.08
#: A sentence that is better by this comes before the others of its passage.
CLEARLY = 0.05
#: Words with at least this estimated probability don't tell two things apart.
COMMON = 1 / 4
#: Two statements say different things of one if at least this part of their words is the same.
ALIKE = 0.7

_ASKS_WHETHER = re.compile(
    r"\W*(?:is|are|was|were|do|does|did|has|have|had|can|could|may|must|shall|should|will|would)(?:n't)? "
)
_ASKS_WHEN = re.compile(r"\bwhen\b")
#: Matches "what is X"; the group is X.
_ASKS_WHAT = re.compile(r"what(?: is|'s| are| does) (?:an? |the )?(\w[\w-]*(?: \w+)?)(?: mean)?\s*\??$")
#: The beginning of a definition; `{}` is replaced by the defined name.
_DEFINITION = r"\W*(?:an? |the )?{}\W.{{0,80}}?\b(?:is|are|means?|refers? to)\b"


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
    #: Whether it has in itself a word of the question or the kind of amount asked for, or it belongs to all of them.
    says: bool = True
    #: How much it has of the kind of amount that the question asks for.
    measured: float = 0.0

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
    #: The question, if it names something and nothing answers.
    unanswered: "Question | None" = field(default=None, repr=False)
    #: Whether each thing that the question names is somewhere in the passages.
    knows_all: bool = True
    #: The nearest statements, best first, to show if none answers.
    nearest: tuple[Citation, ...] = ()
    warnings: tuple[str, ...] = ()


class Asked(Question):
    """A question, with what decides about its answers."""

    def __init__(self, question: str, searched: str, passages: Sequence[Passage]) -> None:
        super().__init__(question, searched, passages)
        self.wants_number = bool(ASKS_FOR_NUMBER.search(self.question) or _ASKS_WHEN.search(self.question))
        asks_what = _ASKS_WHAT.match(self.question)
        self.definition = re.compile(_DEFINITION.format(re.escape(asks_what[1]) if asks_what else "(?!)"), re.DOTALL)

    def score(self, place: int, passages: int, statement: Statement) -> Scored:
        heads = statement.heads
        own = self.counting(statement.text) | self.counting(heads)
        head = self.counting(statement.head)
        around = frozenset[str]().union(*map(self.counting, (*statement.around, *statement.above)))
        measured = self.measured(statement)
        if self.measure and not measured:
            statement = self.with_heading(statement)
            measured = float(statement.heads != heads)
        said = frozenset[str]()
        if measured == 1.0 and self.measure:
            # "£780" says what the rent is.
            said = own & self.measure.names
            own |= self.measure.names
        shares = {stem: weight * self.share_of(stem, own, head, around) for stem, weight in self.weights.items()}
        covered = sum(shares.values())
        plain = self.weights.keys() - (self.measure.names if self.measure else ())
        has_words = not plain or any(shares[stem] for stem in plain) or not said.isdisjoint(self.weights)
        covered += self.measure_weight * measured
        covered = covered / self.total if self.total else 0.0
        worth = covered + HINT * self.hints_at(statement) - RANK * place / passages
        has_all = all(shares.values())
        says = has_all or measured == 1.0 or any(not likes_of(stem).isdisjoint(own) for stem in self.weights)
        return Scored(
            place, statement, own & self.words, covered, worth, has_words=has_words, says=says, measured=measured
        )

    def hints_at(self, statement: Statement) -> int:
        """Return how much the form of a statement says that it answers."""
        text = statement.text.lower()
        hints = (
            (self.wants_number and any(map(str.isdigit, text)))
            + bool(self.definition.match(text))
            # "tenant: Ruiz" rather than "The tenant may keep one cat."
            + (statement.kind == "field" and stems_of(statement.text.partition(":")[0]) <= self.words)
            - ((len(text.split()) < FEWEST_WORDS and statement.kind == "prose") or text.endswith(("?", ":")))
        )
        subject = reading_of(statement.subject)
        is_another = statement.subject and not any(is_in(need, subject) for need in self.needs)
        is_another = is_another and subject.words.isdisjoint(self.weights)
        return hints - bool(self.needs and is_another)

    def with_heading(self, statement: Statement) -> Statement:
        """Return the statement with its heading, if this says when or in which version, as asked."""
        shapes = self.measure.in_heads if self.measure else ()
        for heading in filter(None, (statement.head, *statement.above[: statement.headings])):
            plain = self.numbers.sub(" ", heading) if self.numbers else heading
            if heading != statement.text and any(shape.search(plain.lower()) for shape in shapes):
                return replace(statement, heads=heading)
        return statement

    def fitting(self, scored: Sequence[Scored]) -> list[Scored]:
        """Return the statements that can answer: those that say something, and have the kind of amount asked for.

        A line that only heads others says nothing but what kind of amount it has.
        """
        fit = [each for each in scored if each.statement.kind != "label" or each.measured]
        fit = [each for each in fit if not self.is_repeated(each)]
        most = max((each.measured for each in fit), default=0.0)
        if self.measure and not most and not self.measure.counted.isdisjoint(map(stem_of, self.nowhere)):
            return []
        fit = [each for each in fit if each.measured == most and (most or self.may_be_measured(each.statement))]
        others = [each for each in fit if self.is_replaced(each.statement) or self.is_out_of_order(each.statement)]
        kept = [each for each in fit if each not in others]
        # Where what is nearest is about another thing, so is the rest.
        best = max((each.worth for each in kept), default=0.0)
        return self.contrasted(kept) if all(each.worth <= best for each in others) else []

    def is_repeated(self, scored: Scored) -> bool:
        """Return whether a statement only repeats the question, and so says nothing unless its heading does.

        Prose that repeats a question for yes or no says yes.
        """
        if scored.statement.kind == "prose" and _ASKS_WHETHER.match(self.question):
            return scored.statement.text.rstrip().endswith("?")
        said = scored.shown if scored.measured else scored.statement.text
        return stems_of(said) <= self.words

    def contrasted(self, scored: Sequence[Scored]) -> list[Scored]:
        """Return the statements without those about another thing than asked, as others beside them show.

        If a word of the question is in one row, label, heading or title, what lacks it there and everywhere else is
        about another row's thing. If each lacks some such word, rows are about nothing that was asked.
        """
        if len(scored) < 2:
            return list(scored)
        scopes = [frozenset[str]().union(*(reading.words for reading in each.statement.scope)) for each in scored]
        told = set[str]()
        for each in scored:
            names = each.statement.named
            told |= {stem for stem in self.weights if stem in names and chance_of(stem) < COMMON}
        told = {stem for stem in told if not all(stem in scope for scope in scopes)}
        kept = [each for each, scope in zip(scored, scopes, strict=True) if told <= scope]
        is_joined = re.search(r" (?:and|or|than|vs|versus) |,", self.question)
        return kept or [each for each in scored if each.statement.kind != "row" or is_joined]

    def answering(self, scored: Sequence[Scored]) -> list[Scored]:
        """Return the statements, best first, that answer a question which names something.

        They cover enough of the question's other words, or they alone cover some.
        """
        about = self.fitting([each for each in scored if each.has_words])
        enough = [each for each in about if not self.total or each.covered >= ENOUGH_ASKED]
        if enough or not about:
            # What only stands below the same heading answers as little.
            below = Counter((each.passage, each.statement.head, each.covered) for each in enough if not each.says)
            return [each for each in enough if each.says or below[each.passage, each.statement.head, each.covered] == 1]
        best = max(each.covered for each in about)
        near = [each for each in about if each.covered >= best - MARGIN]
        places = {(each.passage, each.statement.head) for each in near}
        is_one = len(places) == 1 and not reading_of(near[0].statement.head).words.isdisjoint(self.weights)
        is_clear = best >= LITTLE_ASKED and (is_one or len({each.shown.lower() for each in near}) == 1)
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
            chosen = _choose(self, passages, self.fitting([each for each in scored if worthy[each.passage]]))
            related = [each for each in scored if each.covered > 0][:MOST_RELATED]
        return chosen, related


def quote_best(question: str, searched: str, passages: Sequence[Passage], worthy: Sequence[bool] = ()) -> QuotedAnswer:
    """Return what the passages, ordered best first, say about a question.

    Every piece but the first begins with a space. `searched` is the question with words from the conversation. Passages
    that aren't `worthy` answer only a question that names something that they have.
    """
    asked = Asked(question, searched, passages)
    worthy = worthy or [True] * len(passages)
    # Most passages lack what the question names; a few of them are enough to show what is related.
    read = [at for at, each in enumerate(passages) if (asked.may_be_in(each) if asked.needs else worthy[at])]
    read = read or list(range(min(MOST_RELATED, len(passages))))
    scored = [asked.score(at, len(passages), each) for at in read for each in statements_of(passages[at])]
    scored.sort(key=lambda each: -each.worth)
    chosen, related = asked.choose(passages, worthy, scored)
    differ = any(
        _differ(one, other) and all(one.statement.has(need) == other.statement.has(need) for need in asked.needs)
        for one, other in combinations(chosen, 2)
    )
    unmatched = _unmatched(asked, chosen, scored)
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
            unmatched=unmatched,
            is_whole=False,
            knows_all=knows_all,
            nearest=nearest,
            unanswered=asked if asked.needs else None,
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
    if asked.needs or asked.measure:
        return chosen
    # Order passages by when they were chosen, and sentences of one passage by position.
    order = list(dict.fromkeys(each.passage for each in chosen))
    best = chosen[0].worth - CLEARLY if chosen else 0.0
    return sorted(chosen, key=lambda each: (order.index(each.passage), each.worth < best, each.span))


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


def _unmatched(asked: Asked, chosen: Sequence[Scored], scored: Sequence[Scored]) -> tuple[str, ...]:
    """Return what the question names that the answer isn't about, or if it has all, the rare words found nowhere."""
    if chosen:
        missing = [need.text for need in asked.needs if not any(each.statement.has(need) for each in chosen)]
    else:
        nowhere = [need.text for need in asked.needs if not any(each.statement.has(need) for each in scored)]
        nearest = min((asked.lacks(each.statement) for each in scored), key=len, default=asked.needs)
        missing = nowhere or [need.text for need in nearest]
    rare = [
        word
        for word in words_of(asked.question)
        if word in asked.nowhere
        and chance_of(stem_of(word)) == RARE
        and not any(word in need.text.lower() for need in asked.needs)
    ]
    return tuple(dict.fromkeys([*missing, *rare]))
