"""Candidates: statements that may answer a question, each with a score by the words that it shares with it.

The words of what a statement belongs to count in part.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from svc_daemon.core.answers.particulars import Need
from svc_daemon.core.answers.passages import ASKS_FOR_NUMBER, Passage, chance_of
from svc_daemon.core.answers.questions import Question
from svc_daemon.core.answers.statements import Statement
from svc_daemon.core.text.sentences import Span
from svc_daemon.core.text.words import stem_of, stems_of

#: Added to a sentence's score if it has the number or definition that the question asks for; subtracted if the sentence
#: is a question or heading.
HINT = 0.2
#: Subtracted from a sentence's score according to its passage's rank: 0 for the first passage, nearly this for the
#: last.
RANK = 0.1
#: Sentences with fewer words than this, such as `Yes.`, make no sense when quoted alone.
FEWEST_WORDS = 3
#: Words with at least this estimated probability don't tell two things apart.
COMMON = 1 / 4

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


class Asked(Question):
    """A question, with what decides about its answers."""

    def __init__(self, question: str, searched: str, passages: Sequence[Passage]) -> None:
        super().__init__(question, searched, passages)
        self.wants_number = bool(ASKS_FOR_NUMBER.search(self.question) or _ASKS_WHEN.search(self.question))
        asks_what = _ASKS_WHAT.match(self.question)
        self.definition = re.compile(_DEFINITION.format(re.escape(asks_what[1]) if asks_what else "(?!)"), re.DOTALL)

    def nearest(self, statements: Iterable[tuple[int, Statement]]) -> tuple[list[tuple[int, Statement]], list[Need]]:
        """Return the statements that lack the least of what the question names, and what is lacked."""
        lacking = [(self.lacks(each), (at, each)) for at, each in statements]
        fewest = min((len(lacks) for lacks, _ in lacking), default=0)
        near = [each for lacks, each in lacking if len(lacks) == fewest]
        if not fewest:
            return near, [] if lacking else self.needs
        nowhere = [need for need in self.needs if not any(each.has(need) for _, (_, each) in lacking)]
        return near, nowhere or next(lacks for lacks, _ in lacking if len(lacks) == fewest)

    def score(self, place: int, passages: int, statement: Statement) -> Scored:
        heads = statement.heads
        own = self.counting(statement.text) | self.counting(heads)
        head = self.counting(statement.head)
        around = frozenset[str]().union(*map(self.counting, (*statement.around, *statement.above)))
        measured = self.measured(statement)
        if self.measure and not measured:
            statement = self.with_heading(statement)
            measured = float(statement.heads != heads)
        if measured == 1.0 and self.measure:
            # "£780" says what the rent is.
            own |= self.measure.names
        shares = {stem: weight * self.share_of(stem, own, head, around) for stem, weight in self.weights.items()}
        covered = sum(shares.values())
        covered += self.measure_weight * measured
        covered = covered / self.total if self.total else 0.0
        worth = covered + HINT * self.hints_at(statement) - RANK * place / passages
        return Scored(place, statement, own & self.words, covered, worth, measured=measured)

    def hints_at(self, statement: Statement) -> int:
        """Return how much the form of a statement says that it answers."""
        text = statement.text.lower()
        return (
            (self.wants_number and any(map(str.isdigit, text)))
            + bool(self.definition.match(text))
            # "tenant: Ruiz" rather than "The tenant may keep one cat."
            + (statement.kind == "field" and stems_of(statement.text.partition(":")[0]) <= self.words)
            - ((len(text.split()) < FEWEST_WORDS and statement.kind == "prose") or text.endswith(("?", ":")))
        )

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
