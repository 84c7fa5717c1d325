"""Orders and scores the chunks that a search has found, and writes its warnings. Used by all search providers."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Generic, TypeVar

from svc_daemon.core.search.ranking import POOL, Candidate, fuse, hybrid_score, reorder, semantic_score, weigh_feedback
from svc_daemon.core.text.queries import ParsedQuery
from svc_daemon.provider.contract import KeywordMatch, Part, SearchMode, SearchQuery, SemanticMatch, VectorCount

K = TypeVar("K")

#: Minimum number of candidates of each ranking in a hybrid search; more would hardly improve the results.
CANDIDATES = 50

#: The parts of a chunk.
PARTS: tuple[Part, ...] = ("title", "headings", "text")


@dataclass(frozen=True, slots=True)
class Placed(Generic[K]):
    """A ranked chunk, with its positions in the keyword and semantic rankings, and its score in the merged ranking."""

    key: K
    keyword: KeywordMatch | None = None
    semantic: SemanticMatch | None = None
    fused: float | None = None
    #: Whether the query names the chunk's document.
    is_named: bool = False


def refine(
    ranked: Sequence[tuple[K, float]],
    whole: Collection[K],
    read_texts: Callable[[Sequence[K]], Mapping[K, str]],
    *,
    in_order: Collection[K] = (),
) -> list[Placed[K]]:
    """Reorder the first `POOL` chunks of a BM25 ranking.

    Chunks with every query word (`whole`) move up, and those first that have them side by side, as the query does
    (`in_order`). Chunks that share words with the first few move up too. Chunks with
    the same score are ordered by their texts, so that two installations with the same content give the same order.
    `read_texts` returns the chunks' texts, and is called only if they are needed.
    """
    pool, texts = ranked[:POOL], dict[K, str]()
    feedback: list[float | None] = [None] * len(pool)
    if len(pool) == POOL or len({bm25 for _, bm25 in pool}) < len(pool):
        texts = {**read_texts([key for key, _ in pool])}
        pool = sorted(pool, key=lambda pair: (-pair[1], texts[pair[0]]))
    if len(pool) == POOL:
        feedback = [*weigh_feedback([bm25 for _, bm25 in pool], [texts[key] for key, _ in pool])]
    candidates = [
        Candidate(bm25=bm25, is_whole=key in whole, is_in_order=key in in_order, feedback=share or 0.0)
        for (key, bm25), share in zip(pool, feedback, strict=True)
    ]
    first = [(*pool[position], feedback[position]) for position in reorder(candidates)]
    rest = [(key, bm25, None) for key, bm25 in ranked[POOL:]]
    return [
        Placed(key, keyword=KeywordMatch(rank=rank, bm25=bm25, feedback=share))
        for rank, (key, bm25, share) in enumerate([*first, *rest], start=1)
    ]


def fuse_placed(words: Sequence[Placed[K]], meaning: Sequence[Placed[K]]) -> list[Placed[K]]:
    """Merge a keyword and a semantic ranking, best first."""
    by_words = {placed.key: placed for placed in words}
    by_meaning = {placed.key: placed for placed in meaning}
    return [
        Placed(
            key,
            keyword=by_words[key].keyword if key in by_words else None,
            semantic=by_meaning[key].semantic if key in by_meaning else None,
            fused=score,
        )
        for key, score in fuse(list(by_words), list(by_meaning))
    ]


def put_first(named: Sequence[Placed[K]], order: Sequence[Placed[K]]) -> list[Placed[K]]:
    """Return the chunks in this order, but those of documents that the query names first."""
    keys = {placed.key for placed in named}
    joined = [*(replace(placed, is_named=True) for placed in named), *(each for each in order if each.key not in keys)]
    ranks = count(1)
    return [
        replace(placed, keyword=replace(placed.keyword, rank=next(ranks))) if placed.keyword else placed
        for placed in joined
    ]


def score_hit(mode: SearchMode, covered: float, semantic: SemanticMatch | None) -> float:
    """Compute a hit's score for the search mode."""
    if mode is SearchMode.KEYWORD:
        return covered
    cosine = semantic.cosine if semantic else None
    return hybrid_score(covered, cosine) if mode is SearchMode.HYBRID else semantic_score(cosine or 0.0)


def list_warnings(
    query: SearchQuery,
    parsed: ParsedQuery,
    mode: SearchMode,
    count_vectors: Callable[[], VectorCount],
    *,
    is_empty: bool = False,
) -> Iterator[str]:
    """List warnings about what the search could not do; `mode` is the mode that was used.

    `is_empty` says that nothing was found.
    """
    if parsed.words_left_out and mode is not SearchMode.SEMANTIC:
        yield f"The query is long: its last {parsed.words_left_out} words were left out."
    if is_empty and parsed.phrases and mode is not SearchMode.SEMANTIC:
        yield "Words in quotation marks must occur as they are quoted: without the marks, more may be found."
    if query.mode is SearchMode.SEMANTIC and mode is SearchMode.KEYWORD:
        yield "The search used keywords only, because the query has no vector."
    if mode is SearchMode.KEYWORD:
        return
    missing, chunks = count_vectors()
    if missing:
        way = "can't be found by meaning" if mode is SearchMode.SEMANTIC else "are found by their words alone"
        yield f"{missing} of {chunks} passages have no vectors yet and {way}."


def storable(text: str) -> str:
    """Replace lone surrogates, which UTF-8 can't encode. Offsets don't change."""
    return text.encode(errors="replace").decode()


def embeddable(title: str, headings: Sequence[str], text: str) -> str:
    """Join a chunk's title, headings and text for the embedding model. Repeated parts are left out."""
    return "\n".join(filter(None, dict.fromkeys((title, *headings, text))))


def distinct(bucket_ids: Iterable[str]) -> tuple[str, ...]:
    """Return the ids, sorted and without duplicates."""
    return tuple(sorted(set(bucket_ids)))


def merge_spans(spans: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Sort places in a text, and join those that overlap."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged)
