"""Answers questions: a search finds passages, and a language model writes the answer from them.

If no model is configured, the answer consists of sentences quoted from the passages.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial

from svc_daemon.core import readiness
from svc_daemon.core.answers.citations import WrittenAnswer, is_grounded, is_support
from svc_daemon.core.answers.conversations import FollowUp, Turn, prompt, sharpen
from svc_daemon.core.answers.extractive_answers import NOTHING_FOUND, QuotedAnswer, quote_best
from svc_daemon.core.answers.passages import Citation, Passage, QuotePlace, place_of, quote_of, trust_of, weigh_evidence
from svc_daemon.core.search.agents import TeamAgent
from svc_daemon.core.text.queries import deciding_words
from svc_daemon.core.text.sentences import sentences_of
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import ServiceError
from svc_daemon.llm.contract import Cut, Ending, Llm, LlmFailed, Usage
from svc_daemon.operations.retrieve.searches import Results, SearchHit, search
from svc_daemon.process.contexts import Context
from svc_daemon.provider.contract import Hit
from svc_daemon.provider.errors import ProviderError
from svc_daemon.store.rows.keys import KeyRow
from svc_daemon.store.rows.sources.search_candidates import FoundSource, list_active_sources
from svc_daemon.wire.light.error_codes import ErrorCode
from svc_daemon.wire.searches import SearchRequest

#: Number of characters of a model's text to process before other requests get a turn.
PART_CHARACTERS = 200
#: How much of a document is read before a passage, and how far from its beginning the passage may be.
LEAD_CHARACTERS, MOST_BEFORE = 20_000, 300_000
#: So many of the passages found are read with the text before them.
MOST_LED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A question to an agent."""

    #: The model's or agent's name, as the caller spelled it.
    model: str
    #: The conversation; the last message is the user's question.
    turns: tuple[Turn, ...]
    #: The caller's instructions on how to answer.
    instructions: str = ""
    #: Names of parameters that the caller has sent, and that no answer heeds.
    unheeded: tuple[str, ...] = ()
    #: Names of fields that no question has, for a warning.
    unknown: str = ""
    #: Search only these buckets; None means all that the agent searches.
    buckets: tuple[str, ...] | None = None

    @property
    def question(self) -> str:
        return self.turns[-1].text

    def list_unused(self, *, has_model: bool) -> list[str]:
        """Return warnings that name what the caller has sent without an effect, if anything."""
        unused = [*(["instructions"] if self.instructions and not has_model else []), *self.unheeded]
        why = "the service chooses this itself" if has_model else "no language model writes the answers here"
        return [
            *([f"Without effect: {', '.join(unused)}; {why}."] if unused else []),
            *([f"A question has no such field, so this had no effect: {self.unknown}."] if self.unknown else []),
        ]


@dataclass(frozen=True, slots=True)
class Cited:
    """A citation in an answer, with the quoted text and its source."""

    citation: Citation
    found: SearchHit
    quote: str
    place: QuotePlace


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerOutcome:
    """The complete answer, yielded after all pieces of its text."""

    text: str
    usage: Usage
    #: All citations, in the order of the text.
    cited: tuple[Cited, ...] = ()
    grounded: bool = False
    #: Why the model stopped early; None if its answer is complete.
    cut: Cut | None = None
    #: Warnings, for example that the search used keywords only, or that sources differ.
    warnings: tuple[str, ...] = ()
    #: What the question names, and rare words of it, that the answer lacks.
    unmatched: tuple[str, ...] = ()
    #: The nearest that was found, if nothing answers.
    related: tuple[Cited, ...] = ()

    @property
    def sources(self) -> list[Cited]:
        """Return the first citation for each citation number, in the order of the text."""
        first: dict[int, Cited] = {}
        for each in self.cited:
            first.setdefault(each.citation.number, each)
        return list(first.values())


#: Yields the pieces of an answer's text, each citation after the text that it supports, and finally the outcome.
AnswerStream = AsyncGenerator[str | Cited | AnswerOutcome, None]
#: Like AnswerStream, but its citations name a passage instead of a source.
Writing = AsyncGenerator[str | Citation | AnswerOutcome, None]


async def answer(context: Context, key: KeyRow, ask: Ask) -> AnswerStream:
    """Answer from the sources that the key may read and the agent retrieves.

    Raises the errors of a search, and `answer_failed` or `answer_timeout`, even after some pieces were sent.
    """
    query = sharpen(ask.turns, context.limits.query_characters)
    buckets = None if ask.buckets is None else list(ask.buckets)
    results = await search(context, key, SearchRequest(query=query, agent=ask.model, buckets=buckets))
    passages, worthy = await _judge_passages(ask, query, results)
    # A threshold alone decides which passages support an answer.
    chunks = results.chunks if results.score_threshold is None else 0
    # Run in a thread: this can take a fifth of a second.
    findings = await asyncio.to_thread(quote_best, ask.question, query, passages, worthy, chunks)
    unanswered = findings.unanswered
    if unanswered and any(passage.chunk.ordinal for passage in passages):
        # A passage may continue a table or a list whose head names what it is about.
        led = await context.search_in_thread(_lead, context, key.team_id, results.found, passages)
        if any(passage.lead and unanswered.may_be_in(passage) for passage in led):
            passages = led
            findings = await asyncio.to_thread(quote_best, ask.question, query, passages, worthy, chunks)
    cited: list[Cited] = []

    def cite(citation: Citation) -> Cited:
        passage, span = passages[citation.passage], citation.span
        return Cited(citation, results.found[citation.passage], quote_of(passage, span), place_of(passage, span))

    async with aclosing(_begin(context, ask, passages, findings, worthy, results.agent)) as writing:
        async for piece in writing:
            if isinstance(piece, str):
                yield piece
                continue
            await context.read_in_thread(partial(_refuse_taken_away, team_id=key.team_id, found=results.found))
            if isinstance(piece, Citation):
                cited.append(cite(piece))
                yield cited[-1]
            else:
                related = () if piece.grounded else tuple(map(cite, findings.nearest))
                warnings = (*results.warnings, *piece.warnings, *ask.list_unused(has_model=context.llm is not None))
                unmatched = () if piece.grounded and cited and not piece.unmatched else findings.unmatched
                yield replace(piece, cited=tuple(cited), related=related, warnings=warnings, unmatched=unmatched)


def _lead(context: Context, team_id: str, found: Sequence[SearchHit], passages: Sequence[Passage]) -> list[Passage]:
    """Return the passages with the text before them, as far as it is near the beginning of its document."""
    wanted = [each for each in found if each.hit.chunk.ordinal and each.hit.chunk.char_start <= MOST_BEFORE][:MOST_LED]
    try:
        stored = {each.source.id: context.provider.get_text(team_id, each.source.id) for each in wanted}
    except ProviderError:
        # The index is being rebuilt, so the passages have to do.
        return list(passages)
    led = []
    for each, passage in zip(found, passages, strict=True):
        whole = stored.get(each.source.id)
        start = passage.chunk.char_start
        is_same = whole and whole.text.startswith(passage.text, start)
        before = whole.text[max(0, start - LEAD_CHARACTERS) : start] if whole and is_same else ""
        led.append(replace(passage, lead=before))
    return led


def _refuse_taken_away(connection: Connection, team_id: str, found: Sequence[SearchHit]) -> None:
    """Raise `answer_failed` if a passage's source was removed while the answer was written.

    The model may have used the passage without citing it.
    """
    sources = list_active_sources(connection, team_id, list({each.source.id for each in found}))
    if not all(_still_counts(each, sources.get(each.source.id)) for each in found):
        raise ServiceError(
            ErrorCode.ANSWER_FAILED, "A source of the answer was removed while the answer was being written. Ask again."
        )


def _still_counts(found: SearchHit, source: FoundSource | None) -> bool:
    if source is None or found.hit.generation not in source.generations:
        return False
    return not found.bucket_ids or any(source.places.get(bucket) == readiness.ACTIVE for bucket in found.bucket_ids)


async def _judge_passages(ask: Ask, query: str, results: Results) -> tuple[list[Passage], list[bool]]:
    """Return the passages of the hits, and whether each can support an answer.

    If the request or the agent's policy sets a minimum score, the hits have it, and it alone decides.
    """
    own = frozenset(deciding_words(ask.question))
    idfs = {match.term: match.idf for found in results.found for match in found.hit.matches}
    asked = FollowUp(own=own, lent=frozenset(deciding_words(query)) - own, found=idfs)
    passages = [
        Passage(
            chunk=found.hit.chunk,
            title=found.source.title,
            document=found.source.id,
            weights={match.term: match.idf for match in found.hit.matches},
        )
        for found in results.found
    ]
    trust = trust_of(ask.question, results.chunks)
    said: Sequence[float] = [0.0] * len(passages)
    if trust:
        # Run in a thread: this can take a tenth of a second.
        evidence = await asyncio.to_thread(weigh_evidence, ask.question, asked.counted, passages)
        said = evidence.said
        weights = {
            word: trust * weight + (1 - trust) * asked.found.get(word, 0.0) for word, weight in evidence.weights.items()
        }
        passages = [replace(passage, weights=weights) for passage in passages]
    worthy = [
        _is_worthy(found.hit, results, asked, share, trust) for found, share in zip(results.found, said, strict=True)
    ]
    return passages, worthy


def _is_worthy(hit: Hit, results: Results, asked: FollowUp, said: float, trust: float) -> bool:
    if results.score_threshold is not None:
        return hit.score >= results.score_threshold
    matched = [match.term for match in hit.matches]
    coverage = asked.coverage(matched, hit.coverage) if asked.lent else hit.coverage
    return is_support(coverage, len(matched), hit.semantic.cosine if hit.semantic else None, said, trust)


def _begin(
    context: Context,
    ask: Ask,
    passages: Sequence[Passage],
    findings: QuotedAnswer,
    worthy: Sequence[bool],
    agent: TeamAgent | None,
) -> Writing:
    if context.llm is None or not findings.knows_all:
        return _quote(ask, findings)
    answering = {piece.citation.passage for piece in findings.pieces}
    places = [place for place, is_worthy in enumerate(worthy) if is_worthy or place in answering]
    if not any(sentences_of(passages[place].text) for place in places):
        return _quote(ask, findings)
    guidance = (agent.role, agent.instructions, ask.instructions) if agent else (ask.instructions,)
    return _write(context.llm, ask, [passages[place] for place in places], places, guidance)


async def _quote(ask: Ask, findings: QuotedAnswer) -> Writing:
    for piece in findings.pieces:
        yield piece.text
        yield piece.citation
    text = "".join(piece.text for piece in findings.pieces) or NOTHING_FOUND
    if not findings.pieces:
        yield text
    yield AnswerOutcome(
        text=text,
        usage=_count(ask, text),
        grounded=findings.is_whole,
        unmatched=findings.unmatched,
        warnings=findings.warnings,
    )


async def _write(
    llm: Llm, ask: Ask, passages: Sequence[Passage], places: Sequence[int], guidance: Sequence[str]
) -> Writing:
    """Let the model answer from the passages. `places` are their indexes among all that were found."""
    written = WrittenAnswer(ask.question, passages)
    ending = Ending()
    async with aclosing(llm.write(prompt(ask.turns, passages, guidance))) as pieces:
        try:
            async for piece in pieces:
                if isinstance(piece, Ending):
                    ending = piece
                    continue
                for at in range(0, len(piece), PART_CHARACTERS):
                    for new in written.feed(piece[at : at + PART_CHARACTERS]):
                        yield new if isinstance(new, str) else replace(new, passage=places[new.passage])
                    # Let other requests run, even if the model sends its whole answer at once.
                    await asyncio.sleep(0)
        except LlmFailed as error:
            code = ErrorCode.ANSWER_TIMEOUT if error.is_timeout else ErrorCode.ANSWER_FAILED
            raise ServiceError(code, str(error)) from error
    for rest in written.finish():
        yield rest
    if not written.text.strip() and ending.cut is None:
        raise ServiceError(ErrorCode.ANSWER_FAILED, "The model wrote nothing.")
    yield AnswerOutcome(
        text=written.text,
        usage=ending.usage or _count(ask, written.text),
        # Run in a thread: a long answer takes most of a second.
        grounded=await asyncio.to_thread(is_grounded, written),
        cut=ending.cut,
    )


def _count(ask: Ask, text: str) -> Usage:
    """Estimate the numbers of tokens by counting words."""
    return Usage(sum(len(turn.text.split()) for turn in ask.turns), len(text.split()))
