"""Candidates: statements that may answer a question, each with a score by the words that it shares with it.

The words of what a statement belongs to count in part.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cache, cached_property
from itertools import pairwise

from svc_daemon.core.answers.lines import names_in
from svc_daemon.core.answers.particulars import Need, is_in, is_in_part, is_within
from svc_daemon.core.answers.passages import ASKS_FOR_NUMBER, Passage, chance_of, is_familiar
from svc_daemon.core.answers.quantities import ORDER
from svc_daemon.core.answers.questions import ORDERED, Question
from svc_daemon.core.answers.statements import Statement, reading_of
from svc_daemon.core.text.sentences import Span
from svc_daemon.core.text.words import parts_of, stem_of, stems_of, words_of

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

#: So many characters at the beginning of a document say what it is about.
FRONT = 300

_ZEROS = re.compile(r"(?<!\w)0+(?=\d)")
_KEY_END = re.compile(r"[:=]")
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_ORDINAL_OR_WORD = re.compile(r"[^\W_]+")
_CELL_END = re.compile(r"\n| \| ")
_ASKS_WHETHER = re.compile(
    r"\W*(?:is|are|was|were|do|does|did|has|have|had|can|could|may|must|shall|should|will|would)(?:n't)? "
)
_ASKS_WHOSE = re.compile(r"\b(?:who|whose|wer|wem|wessen|à qui|qui|quién|di chi|chi|wie|van wie|czyj\w*|кто|чей)\b")
_ASKS_WHEN = re.compile(r"\bwhen\b")
#: Matches "what is X"; the group is X.
_ASKS_WHAT = re.compile(r"what(?: is|'s| are| does) (?:an? |the )?(\w[\w-]*(?: \w+)?)(?: mean)?\s*\??$")
#: The beginning of a definition; `{}` is replaced by the defined name.
_DEFINITION = r"\W*(?:an? |the )?{}\W.{{0,80}}?\b(?:is|are|means?|refers? to)\b"
#: Words that tell one of a kind from others.
_OTHERS = "main|large|small|big|great|little|upper|lower|front|back|old|new|other|north|south|east|west"


class Place(IntEnum):
    """Where a document has what a question names, if not in what a statement belongs to."""

    NOWHERE = 0
    #: In what only other statements belong to, such as a heading or record.
    UNDER_ANOTHER = 5
    #: Only one of the words of a name, or the number without its label.
    IN_PART = 1
    IN_DOCUMENT = 2
    IN_PASSAGE = 3
    #: In its title or first lines, which say what all of it is about.
    IN_FRONT = 4


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
    #: What the question names and only the rest of the document has: for each, whether it has digits, and where.
    apart: tuple[tuple[bool, "Place"], ...] = ()

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
        self.asks_whose = _ASKS_WHOSE.search(self.question) is not None
        self.passages = passages
        documents = [each.document or each.title for each in passages]
        #: For each passage, those of its document.
        self.beside = [[other for other, key in enumerate(documents) if key == document] for document in documents]
        self.place = cache(self._place)
        #: The passages of a document in lower case, by the first of them.
        self.low = cache(
            lambda first: [
                f"{each.context} {each.lead} {each.text}".lower()
                for each in map(passages.__getitem__, self.beside[first])
            ]
        )
        #: What the question names and only some statements of a document belong to, with the document's first passage.
        self.parted: set[tuple[int, Need]] = set()
        self.definition = re.compile(_DEFINITION.format(re.escape(asks_what[1]) if asks_what else "(?!)"), re.DOTALL)

    def _place(self, need: Need, at: int) -> Place:
        """Return where the document of a passage has what the question names."""
        beside = [self.passages[other] for other in self.beside[at]]
        if need.kind != "name" and not any(need.key in text for text in self.low(self.beside[at][0])):
            return Place.NOWHERE
        fronts = (f"{each.lead} {each.text}" for each in beside if each.lead or not each.chunk.ordinal)
        whole, titles = next(fronts, "").strip(), names_in(beside[0].title)
        # The first letter of a word that is cut may be what is named.
        begin = whole if len(whole) <= FRONT else whole[:FRONT].rpartition(" ")[0] or whole[:FRONT]
        front = reading_of("\n".join((begin, *titles)))
        if is_in(need, front):
            return Place.IN_FRONT
        for place, passages in ((Place.IN_PASSAGE, [self.passages[at]]), (Place.IN_DOCUMENT, beside)):
            readings = [reading_of(text) for each in passages for text in (each.text, *each.chunk.headings)]
            if any(is_in(need, reading) or is_within(need, reading) for reading in readings):
                return place
        lines = [line for text in (begin, *(each.text for each in beside)) for line in _CELL_END.split(text.lower())]
        low = [title.lower() for title in titles]
        first = next(iter(words_of(self.question)), "")
        return Place.IN_PART if is_in_part(need, low, lines, first) else Place.NOWHERE

    def part_of(self, need: Need, at: int) -> Place:
        """Return where the document of a passage has what the question names, for a statement that lacks it."""
        return Place.UNDER_ANOTHER if (self.beside[at][0], need) in self.parted else self.place(need, at)

    def may_be_about(self, at: int) -> bool:
        """Return whether the document of a passage has all that the question names, or parts of it."""
        return all(any(self.place(need, at) for need in group) for group in self.groups)

    def is_called(self, title: str) -> bool:
        """Return whether all that the question names is in this title."""
        names = names_in(title)
        # `pep-0484` is PEP 484.
        reading = reading_of("\n".join((*names, *(_ZEROS.sub("", name) for name in names))))
        return all(any(is_in(need, reading) for need in group) for group in self.groups)

    def is_met(self, need: Need, scored: Scored) -> bool:
        """Return whether a statement, or its document, has what the question names; of alternatives, the statement."""
        is_only = sum(need.group == other.group for other in self.needs) == 1
        return scored.statement.covers(need) or (is_only and self.place(need, scored.passage) > Place.NOWHERE)

    def is_whose(self, scored: Scored) -> bool:
        """Return whether a statement has the number of a phone, card or account itself whose owner is asked for."""
        return self.asks_whose and any(need.kind == "spelled" and scored.statement.has(need) for need in self.needs)

    def has_options(self, statement: Statement) -> bool:
        """Return whether a statement is about all options of a program that the question has."""
        return all(statement.has(need) for need in self.needs if need.kind == "option")

    def about_options(self, scored: Sequence[Scored]) -> list[Scored]:
        """Return the statements about the options that the question has: those that say what these do, if any do."""
        near = [each for each in scored if self.has_options(each.statement)]
        options = [need for need in self.needs if need.kind == "option"]
        told = [each for each in near if all(is_in(need, reading_of(each.statement.heads)) for need in options)]
        return told if options and told else near

    def score_all(self, statements: Sequence[tuple[int, Statement]]) -> list[Scored]:
        """Return the statements with their scores, the best first."""
        lacking = [
            [group for group in self.groups if not any(self.is_about(each, need) for need in group)]
            for _, each in statements
        ]
        self.parted = set(self._parted(statements, lacking))
        scored = [
            self.score(at, len(self.passages), each, groups)
            for (at, each), groups in zip(statements, lacking, strict=True)
        ]
        return sorted(scored, key=lambda each: -each.worth)

    def _parted(
        self, statements: Sequence[tuple[int, Statement]], lacking: Sequence[Sequence[Sequence[Need]]]
    ) -> Iterator[tuple[int, Need]]:
        """Yield what is named and only a part of a document belongs to: what is below a heading, or in one record."""
        lacked = {
            (at, need) for (at, _), groups in zip(statements, lacking, strict=True) for each in groups for need in each
        }
        for (at, each), groups in zip(statements, lacking, strict=True):
            headings = each.above[: each.headings]
            for need in (need for group in self.groups if group not in groups for need in group):
                is_headed = any(is_in(need, reading_of(heading)) for heading in headings)
                if is_headed or ((at, need) in lacked and not is_in(need, reading_of(each.text))):
                    yield self.beside[at][0], need

    def nearest(self, statements: Iterable[tuple[int, Statement]]) -> tuple[list[tuple[int, Statement]], list[Need]]:
        """Return the statements that lack the least of what the question names, and what is lacked."""
        lacking = [(self.lacks(each), (at, each)) for at, each in statements]
        fewest = min((len(lacks) for lacks, _ in lacking), default=0)
        near = [each for lacks, each in lacking if len(lacks) == fewest]
        if not fewest:
            return near, [] if lacking else self.needs
        nowhere = [need for need in self.needs if not any(each.covers(need) for _, (_, each) in lacking)]
        return near, nowhere or next(lacks for lacks, _ in lacking if len(lacks) == fewest)

    def score(self, place: int, passages: int, statement: Statement, lacking: Sequence[Sequence[Need]] = ()) -> Scored:
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
        apart = tuple(
            (any(map(str.isdigit, group[0].text)), max(self.part_of(need, place) for need in group))
            for group in lacking
        )
        return Scored(place, statement, own & self.words, covered, worth, measured=measured, apart=apart)

    def hints_at(self, statement: Statement) -> int:
        """Return how much the form of a statement says that it answers."""
        text = statement.text.lower()
        return (
            (self.wants_number and any(map(str.isdigit, text)))
            + bool(self.definition.match(text))
            # "tenant: Ruiz" rather than "The tenant may keep one cat."
            + (statement.kind == "field" and self.has_key_of(statement))
            - ((len(text.split()) < FEWEST_WORDS and statement.kind == "prose") or text.endswith(("?", ":")))
        )

    def has_key_of(self, statement: Statement) -> bool:
        """Return whether the question has all words that a form's line begins with, and so asks for its value."""
        key = _KEY_END.split(statement.text, maxsplit=1)[0]
        return stems_of(" ".join(parts_of(key)) or key) <= self.words

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
        counted = self.measure.counted if self.measure else frozenset[str]()
        if self.measure and not most and (self.measure.is_strict or not counted.isdisjoint(map(stem_of, self.nowhere))):
            return []
        fit = [each for each in fit if each.measured == most and not self.yields_to_an_empty_one(each, fit)]
        others = [each for each in fit if self.is_replaced(each.statement) or self.is_out_of_order(each.statement)]
        kept = [each for each in fit if each not in others]
        # Where what is nearest is about another thing, so is the rest.
        best = max((each.worth for each in kept), default=0.0)
        return self.contrasted(kept) if all(each.worth <= best for each in others) else []

    def yields_to_an_empty_one(self, scored: Scored, among: Sequence[Scored]) -> bool:
        """Return whether another record of its document has more of the question, but no amount as is asked for."""
        kind, names = scored.statement.kind, self.measure.names if self.measure else frozenset[str]()
        return kind in ("row", "record") and any(
            other.shared - names > scored.shared - names and not other.measured and other.statement.kind == kind
            for other in among
            if self.beside[other.passage][0] == self.beside[scored.passage][0]
        )

    def is_repeated(self, scored: Scored) -> bool:
        """Return whether a statement only repeats the question, and so says nothing unless its heading does.

        Prose that repeats a question for yes or no says yes.
        """
        if scored.statement.kind == "prose" and _ASKS_WHETHER.match(self.question):
            return scored.statement.text.rstrip().endswith("?")
        said = scored.shown if scored.measured else scored.statement.text
        if scored.statement.kind == "field":
            # What a label has beside it says something, such as "off", or nothing.
            said = _KEY_END.split(said, maxsplit=1)[-1]
            return stems_of(said) <= self.words and bool(stems_of(said) or not words_of(said))
        return stems_of(said) <= self.words

    def is_of_another(self, statement: Statement) -> bool:
        """Return whether a statement is about another thing than asked: of another order, name or kind."""
        is_other = self.is_out_of_order(statement) or self.is_longer(statement)
        return is_other or any(
            self._names_another(statement, *need.value.rpartition(" ")[::2])
            for need in self.needs
            if need.kind == "name" and isinstance(need.value, str) and " " in need.value
        )

    def _names_another(self, statement: Statement, name: str, kind: str) -> bool:
        """Return whether a statement only has others of a kind: "the main room", "Hill Room", for the Linden Room."""
        text, low = statement.text, statement.text.lower()
        # "room: Linden Annexe" is no Linden Room.
        cell = rf"\b{re.escape(kind)}: {re.escape(name)} [^\W\d_]"
        others = rf"\b(?:{_OTHERS}) {re.escape(kind)}\b|(?<=\w )[A-Z]\w+ {re.escape(kind.title())}\b"
        is_row = statement.kind in ("row", "record") and re.search(cell, (*statement.around, "")[0].lower())
        return f"{name} {kind}" not in low and bool(is_row or (is_familiar(kind) and re.search(others, text)))

    def is_of_another_year(self, scored: Scored) -> bool:
        """Return whether a statement lacks a year or edition that is asked about, and its title has another one."""
        title = self.passages[scored.passage].title.rpartition("/")[2]
        editions = {ORDER[word] for word in _ORDINAL_OR_WORD.findall(title.lower()) if word in ORDER}
        asked = {ORDER[order] for order, _ in ORDERED.findall(self.question)}
        named = set(_YEAR.findall(title))
        if editions and asked and not editions & asked:
            return True
        # "Rules of 2024, which replace those of 2021" are of 2024.
        text, *around = (reading.text for reading in scored.statement.scope)
        own = set(_YEAR.findall(" ".join((text, *(each for each in around if named.isdisjoint(_YEAR.findall(each)))))))
        years = {need.text for need in self.needs if _YEAR.fullmatch(need.text)}
        return bool(named) and not years <= named | (own - self.titled_years)

    @cached_property
    def titled_years(self) -> set[str]:
        """The years of the question that tell documents apart: for "the 2021 list", "Stock list 2021"."""
        begun = (
            f"{each.context} {each.lead or each.text * (not each.chunk.ordinal)}"[:FRONT] for each in self.passages
        )
        fronts = [{*words_of(each), *_YEAR.findall(each)} for each in begun]
        words = _ORDINAL_OR_WORD.findall(self.question.lower())
        pairs = (pair for pair in pairwise(words) if min(map(len, pair)) > 3)
        beside = {frozenset(pair) for pair in pairs if any(map(_YEAR.fullmatch, pair))}
        return {
            word for pair in beside for word in pair if _YEAR.fullmatch(word) and any(pair <= front for front in fronts)
        }

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
        if kept or re.search(r" (?:and|or|than|vs|versus) |,", self.question):
            return kept or list(scored)
        # Of the lines of forms and records, those of the one that has the most, if only one has.
        had = [scope & told for scope in scopes]
        best = {each for each in had if len(each) == max(map(len, had))}
        return [
            each
            for each, words in zip(scored, had, strict=True)
            if each.covered and each.statement.kind != "row" and (each.statement.kind != "field" or {words} == best)
        ]
