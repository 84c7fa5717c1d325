"""Asks the postings for the chunks that have a query's words, best first by BM25."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import tantivy

from svc_daemon.core.search.naming import DECIDES, name_term
from svc_daemon.core.search.ranking import idf
from svc_daemon.core.text.folding import fold
from svc_daemon.core.text.queries import SPELLED, UNSTEMMED, ParsedQuery, splits
from svc_daemon.core.text.terms import LONGEST_SHORT, Alternative, QueryWord, count_mistakes, may_be_mistaken
from svc_daemon.provider.embedded.postings import SCHEMA, translated
from svc_daemon.provider.embedded.schema import ORDINAL_BITS

#: How much a word counts in a document's names, where it counts 1 in headings and text.
NAME_WEIGHT = 0.5
#: How much it counts that two words of the query follow each other.
PAIR_WEIGHT = 0.2
#: Two words are looked up as a pair only if one of them is in at most this many chunks, since this reads all places.
PAIR_MOST = 5_000
#: So many buckets are looked up chunk by chunk. For more, all their chunks are listed first, which takes long if the
#: buckets are large.
FEW_BUCKETS = 8
#: What a chunk scores for having every word, more than BM25 can give it. The library keeps 24 bits of a score.
WHOLE = 8192.0
#: What it scores for having them side by side, as the query has them.
RUN = WHOLE / 2
#: How many documents are looked at, of those whose names have words of the query.
CALLED = 12

_Query = tantivy.Query
_MUST, _SHOULD = tantivy.Occur.Must, tantivy.Occur.Should


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The buckets, and the documents by their numbers in the postings, to search; None means no limit."""

    bucket_ids: Sequence[str] | None = None
    numbers: Sequence[int] | None = None

    def queries(self) -> list[_Query]:
        queries = []
        if self.bucket_ids is not None and len(self.bucket_ids) <= FEW_BUCKETS:
            terms = [_Query.term_query(SCHEMA, "buckets", each, "basic") for each in self.bucket_ids]
            queries.append(_Query.boolean_query([(_SHOULD, term) for term in terms]) if len(terms) > 1 else terms[0])
        elif self.bucket_ids is not None:
            queries.append(_Query.term_set_query(SCHEMA, "buckets", list(self.bucket_ids)))
        if self.numbers is not None:
            queries.append(_Query.term_set_query(SCHEMA, "document", [str(number) for number in self.numbers]))
        return [_Query.const_score_query(query, 0.0) for query in queries]


class Matcher:
    """The words of one query, in one state of the postings."""

    def __init__(
        self,
        searcher: tantivy.Searcher,
        parsed: ParsedQuery,
        languages: Collection[str],
        chunks: int,
        counted_in: Sequence[str] | None = None,
    ) -> None:
        """`languages` are those of the index's documents, `chunks` is the number of their chunks.

        With `counted_in`, words and chunks are counted in these buckets only.
        """
        self._searcher = searcher
        self._counted_in = Scope(bucket_ids=counted_in).queries() if counted_in else []
        self._parsed = parsed
        self._having: dict[tuple[str, str], int] = {}
        with translated():
            #: The number of chunks among which words are counted.
            self.chunks = self._count_hits(self._counted_in) if self._counted_in else chunks
            self._ways = [self._list_ways(word, languages) for word in parsed.words]
            #: The words, each with the ways in which the index has it as two.
            self.words = [
                replace(word, alternatives=tuple(ways)) for word, ways in zip(parsed.words, self._ways, strict=True)
            ]
            #: How many chunks have each word, removed ones included.
            counts = [self._count_having(ways) for ways in self._ways]
        self._counts = counts
        self._idfs = [idf(self.chunks, count) for count in counts]
        #: The inverse document frequency of each word that decides.
        self.weights = {
            word.text: weight for word, weight in zip(parsed.words, self._idfs, strict=True) if word.weight >= DECIDES
        }
        with translated():
            self._words = [self._word(number) for number in range(len(parsed.words))]

    def rank(
        self, scope: Scope, limit: int, is_there: Callable[[Iterable[int]], set[int]]
    ) -> list[tuple[int, float, bool, bool]]:
        """Return the best `limit` chunks, those first that have the query as it is, or every word which decides.

        Each comes with its score, whether it has all these words, and whether it has them side by side. Chunks with
        equal scores come in any order.
        `is_there` returns which of these chunks, given by their keys in the postings, have a document that is visible.
        """
        phrases = [_Query.disjunction_max_query([_run(terms) for terms in runs]) for runs in self._parsed.phrases]
        ranked = self._ask([self._any_word(), *phrases, *scope.queries()], limit, is_there)
        return [(key, score % RUN, score >= WHOLE, score % WHOLE >= RUN) for key, score in ranked]

    def list_called(self, scope: Scope) -> list[int]:
        """List the numbers of documents whose names have words of the query, the most likely first."""
        terms = [[_term("called", name_term(way)) for way in self._named(number)] for number in range(len(self._ways))]
        if not any(terms):
            return []
        any_name = _Query.boolean_query([(_SHOULD, _best(each)) for each in terms])
        return [key >> ORDINAL_BITS for key, _ in self._search([any_name, *scope.queries()], CALLED)]

    def list_near(
        self, scope: Scope, number: int, limit: int, is_there: Callable[[Iterable[int]], set[int]]
    ) -> Iterator[list[int]]:
        """If a word of the query occurs nowhere, yield chunks with a word that may be meant, the nearest first.

        A word that occurs elsewhere in the index was hardly mistyped.
        """
        word = self._parsed.words[number].text
        if self._counts[number] or not may_be_mistaken(word):
            return
        looked_for = [(mistakes, False) for mistakes in range(1, count_mistakes(word) + 1)]
        # Last the words that begin with it.
        for mistakes, is_prefix in [*looked_for, (0, True)][: None if len(word) > LONGEST_SHORT else -1]:
            near = [
                _Query.fuzzy_term_query(SCHEMA, field, fold(word), mistakes, prefix=is_prefix)
                for field in ("words", "forms")
            ]
            any_near = _Query.disjunction_max_query(near)
            yield [key for key, _ in self._ask([any_near, *scope.queries()], limit, is_there)]

    def _ask(
        self, queries: Sequence[_Query], limit: int, is_there: Callable[[Iterable[int]], set[int]]
    ) -> list[tuple[int, float]]:
        asked = limit
        while True:
            hits = self._search(queries, asked)
            there = is_there(key for key, _ in hits)
            found = [hit for hit in hits if hit[0] in there]
            if len(found) >= limit or len(hits) < asked:
                return found[:limit]
            asked *= 4

    def _search(self, queries: Sequence[_Query], limit: int) -> list[tuple[int, float]]:
        query = _Query.boolean_query([(_MUST, query) for query in queries]) if len(queries) > 1 else queries[0]
        with translated():
            hits = self._searcher.search(query, limit, count=False).hits
            keys: list[Any] = self._searcher.fast_field_values("chunk", [address for _, address in hits])
        return [(key, score) for key, (score, _) in zip(keys, hits, strict=True)]

    def _any_word(self) -> _Query:
        """Match chunks that have a word which decides. Others, and words that follow each other, add to it.

        Those with all words that decide, if there are several, score `WHOLE` and more, and `RUN` more those that have
        them as the query does, or the date or number which several of them are.
        """
        parts = [*zip(self._words, self._parsed.words, strict=True)]
        deciding = [query for query, word in parts if word.weight >= DECIDES]
        more = [*(query for query, word in parts if word.weight < DECIDES), *self._pairs()]
        if len(deciding) > 1:
            all_words = _Query.boolean_query([(_MUST, query) for query in deciding])
            more.append(_Query.const_score_query(all_words, WHOLE))
            runs = [
                _run(run)
                for run in self._parsed.runs
                if 0 < min(self._count("words", term) for term in run) <= PAIR_MOST
            ]
            runs += [_term("forms", form) for form in self._parsed.spelled if self._count("forms", form) > 0]
            if runs:
                all_words = _Query.boolean_query([(_MUST, all_words), (_MUST, _best(runs))])
                more.append(_Query.const_score_query(all_words, RUN))
        any_word = _Query.boolean_query([(_SHOULD, query) for query in deciding])
        return _Query.boolean_query([(_MUST, any_word), *((_SHOULD, query) for query in more)])

    def _word(self, number: int) -> _Query:
        """Match chunks that have the word, or whose document is called by it.

        How often a word occurs in a way that is not its stem says little, so these ways add a constant. But a code that
        has no stem counts as often as it occurs, so that those come first that have it in more than their headings.
        """
        weight, idf_ = self._parsed.words[number].weight, self._idfs[number]
        ways = [way for way in self._ways[number] if self._occurs(way)]
        plain = [way for way in ways if _is_plain(way)]
        counted = plain or [way for way in ways if way.in_forms]
        spelled = [way for way in ways if way.in_forms and way.weight in {SPELLED, UNSTEMMED} and plain]
        others = [way for way in ways if way not in counted and way not in spelled]
        parts = [
            _best(
                [_boosted(_alternative(way), way.weight) for way in counted]
                + [_Query.const_score_query(_alternative(way), way.weight * idf_) for way in others]
            ),
            *(_Query.const_score_query(_alternative(way), (way.weight - 1) * idf_) for way in spelled),
            _boosted(
                _best([_boosted(_term("name", name_term(way)), way.weight) for way in self._named(number)]),
                NAME_WEIGHT,
            ),
        ]
        return _boosted(_Query.boolean_query([(_SHOULD, part) for part in parts]), weight)

    def _named(self, number: int) -> list[Alternative]:
        """List the ways in which this word of the query occurs in names."""
        return [way for way in self._ways[number] if len(way.terms) == 1 and self._count("name", name_term(way))]

    def _pairs(self) -> list[_Query]:
        """Match each two words of the query that follow each other."""
        firsts = [next((way for way in ways if _is_plain(way) and self._occurs(way)), None) for ways in self._ways]
        pairs = zip(pairwise(firsts), pairwise(self._counts), strict=True)
        return [
            _boosted(_run((one.terms[0], other.terms[0])), PAIR_WEIGHT)
            for (one, other), counts in pairs
            if one and other and one != other and min(counts) <= PAIR_MOST
        ]

    def _list_ways(self, word: QueryWord, languages: Collection[str]) -> list[Alternative]:
        """List the ways in which a word can stand in a text, also as two words if both occur, and seldom."""
        apart = [
            way
            for way in splits(word.text, languages)
            if all(self._count("words", term) for term in way.terms)
            and min(self._count("words", term) for term in way.terms) <= PAIR_MOST
        ]
        return [*word.alternatives, *apart]

    def _count_having(self, ways: Iterable[Alternative]) -> int:
        """Count the chunks with a word. Where it occurs as several words only, count those with the rarest of them."""
        single = [
            count
            for way in ways
            if len(way.terms) == 1
            for count in (
                self._count("forms" if way.in_forms else "words", way.terms[0]),
                self._count("name", name_term(way)),
            )
        ]
        several = [min(self._count("words", term) for term in each.terms) for each in ways if len(each.terms) > 1]
        return max(single, default=0) or max(several, default=0)

    def _occurs(self, way: Alternative) -> bool:
        return all(self._count("forms" if way.in_forms else "words", term) for term in way.terms)

    def _count(self, field: str, term: str) -> int:
        if (field, term) not in self._having:
            self._having[field, term] = (
                self._count_hits([_term(field, term), *self._counted_in])
                if self._counted_in
                else self._searcher.doc_freq(field, term)
            )
        return self._having[field, term]

    def _count_hits(self, queries: Sequence[_Query]) -> int:
        every = _Query.boolean_query([(_MUST, query) for query in queries])
        found: Any = self._searcher.search(every, 1, count=True)
        return int(found.count)


def _alternative(each: Alternative) -> _Query:
    return _term("forms", each.terms[0]) if each.in_forms else _run(each.terms)


def _is_plain(way: Alternative) -> bool:
    """Whether this is a single term that texts have among their words."""
    return len(way.terms) == 1 and not way.in_forms


def _best(queries: Sequence[_Query]) -> _Query:
    return _Query.disjunction_max_query(queries) if queries else _Query.empty_query()


def _run(terms: Sequence[str]) -> _Query:
    return _term("words", terms[0]) if len(terms) == 1 else _Query.phrase_query(SCHEMA, "words", list(terms))


def _term(field: str, term: str) -> _Query:
    return _Query.term_query(SCHEMA, field, term, "freq")


def _boosted(query: _Query, weight: float) -> _Query:
    return query if weight == 1 else _Query.boost_query(query, weight)
