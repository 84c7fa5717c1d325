"""Keyword, semantic and hybrid search in Milvus."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from svc_daemon.cluster.milvus import chunks, embeddings, schema
from svc_daemon.cluster.milvus.chunks import HIT_FIELDS, Settled, TeamCounts, settle
from svc_daemon.cluster.milvus.editions import Edition
from svc_daemon.cluster.milvus.packing import PackedTerms, encode_term, unpack_chunk
from svc_daemon.cluster.milvus.server import MilvusServer
from svc_daemon.core.search.ranking import POOL, coverage, idf
from svc_daemon.core.text.chunking import Chunk
from svc_daemon.core.text.languages import STEMMERS
from svc_daemon.core.text.places import PlaceFinder
from svc_daemon.core.text.queries import LITTLE, ParsedQuery, parse_query
from svc_daemon.core.text.terms import QueryWord
from svc_daemon.provider import contract
from svc_daemon.provider.errors import SearchTimeout
from svc_daemon.provider.ranked_chunks import (
    CANDIDATES,
    PARTS,
    Placed,
    fuse_placed,
    list_warnings,
    merge_spans,
    refine,
    score_hit,
)

#: Identifies a found chunk by its source's id and its ordinal.
Key = tuple[str, int]
#: Fields of a vector's row that a search reads.
_VECTOR_FIELDS = ("source_id", "edition", "ordinal")
#: Maximum number of attempts at a hybrid search, if documents change between its keyword and its semantic search.
ROUNDS = 3
#: The constants of BM25, as in the schema.
K1, B = 1.2, 0.75


@dataclass(slots=True, kw_only=True)
class MilvusSearch:
    """The state of one search while it runs."""

    server: MilvusServer
    team_id: str
    query: contract.SearchQuery
    counts: TeamCounts
    #: Returns the time in milliseconds since 1970, as in `Edition.stamped_ms`.
    now_ms: Callable[[], int]
    parsed: ParsedQuery = field(default_factory=lambda: ParsedQuery(()))
    #: Weight of each word of the query, by its text.
    weights: dict[str, float] = field(default_factory=dict)
    #: Whether passages with a quoted phrase may have been passed over.
    is_cut: bool = False
    #: The version of each found document that searches see, by source id.
    shown: dict[str, Edition] = field(default_factory=dict)
    #: The rows of the chunks read so far.
    rows: dict[Key, schema.Row] = field(default_factory=dict)

    def run(self) -> contract.HitPage:
        query = self.query
        if query.deadline_s is not None and self.server.clock() >= query.deadline_s:
            raise SearchTimeout
        mode = query.mode if query.vector is not None else contract.SearchMode.KEYWORD
        if any(ids is not None and not ids for ids in (query.bucket_ids, query.source_ids)):
            return contract.HitPage(mode=mode)
        total = self._count("", None)
        if not total:
            return contract.HitPage(mode=mode)
        self.parsed = parsed = parse_query(query.text, self._list_languages())
        ways = {word.text: _having(way.terms for way in word.alternatives) for word in parsed.words}
        having = {word: self._count(f"word {word}", wanted) for word, wanted in ways.items()}
        self.weights = {word.text: word.weight * idf(total, having[word.text]) for word in parsed.words}
        order = {
            contract.SearchMode.KEYWORD: self._by_words,
            contract.SearchMode.SEMANTIC: self._by_meaning,
            contract.SearchMode.HYBRID: self._by_both,
        }[mode](query.offset + query.limit + 1)[query.offset :]
        return contract.HitPage(
            hits=tuple(self._read_hits(mode, order[: query.limit])),
            has_more=len(order) > query.limit,
            mode=mode,
            warnings=(
                *list_warnings(query, parsed, mode, self._count_vectors, is_empty=not order),
                *self._list_gaps(having),
            ),
            chunks=total,
        )

    def _by_words(self, count: int) -> list[Placed[Key]]:
        words = [word for word in self.parsed.words if word.weight > LITTLE]
        if not words:
            return []
        terms = dict.fromkeys(encode_term(term) for word in words for way in word.alternatives for term in way.terms)
        phrases = [_having(ways) for ways in self.parsed.phrases]
        limit = max(POOL, count)
        chunks_there = self.server.collections.chunks
        found = self._settle(chunks_there, " ".join(terms), HIT_FIELDS, limit, schema.every(*phrases) or None)
        self.is_cut |= bool(phrases) and len(found.rows) >= limit
        self.rows |= {_key(row): row for _, row in found.rows}
        packed = {_key(row): PackedTerms(row["terms"]) for _, row in found.rows}
        quoting = {
            key for key, each in packed.items() if all(any(map(each.has_run, ways)) for ways in self.parsed.phrases)
        }
        mean = sum(map(len, packed.values())) / len(packed) if packed else 0.0
        scores = {key: self._score(each, mean) for key, each in packed.items() if key in quoting}
        ranked = sorted(((key, score) for key, score in scores.items() if score), key=_by_score)
        whole = {key for key, _ in ranked[:POOL] if all(packed[key].weigh(word)[0] for word in words)}
        return refine(ranked, whole, self._read_texts)[:count]

    def _score(self, terms: PackedTerms, mean_words: float) -> float:
        """Compute the BM25 score of a chunk, in which the best way to write a word counts.

        Milvus adds up the scores of all ways. Its own scores choose the chunks that are scored here.
        """
        score = 0.0
        for word in self.parsed.words:
            weight, often = terms.weigh(word)
            if often:
                damped = often + K1 * (1 - B + B * len(terms) / mean_words)
                score += self.weights[word.text] * weight * often * (K1 + 1) / damped
        return score

    def _by_meaning(self, count: int) -> list[Placed[Key]]:
        vector = self.query.vector
        if vector is None:
            return []
        values = embeddings.read_vector(vector.values)
        collection = self.server.find_vectors(len(values))
        of_model = schema.equals("model", vector.model)
        found = self._settle(collection, values, _VECTOR_FIELDS, count, of_model) if collection else Settled([], {})
        if not found.rows:
            embeddings.check_length(self.server, self.team_id, vector.model, [len(vector.values)])
        near = sorted(((_key(row), score) for score, row in found.rows if score > 0), key=_by_score)
        return [Placed(key, semantic=self._match(rank, cosine)) for rank, (key, cosine) in enumerate(near, start=1)]

    def _by_both(self, count: int) -> list[Placed[Key]]:
        """Merge the keyword and the semantic ranking: the best `CANDIDATES` of each, or more if the page needs more."""
        count = max(CANDIDATES, count)
        for _ in range(ROUNDS):
            by_words = self._by_words(count)
            before = dict(self.shown)
            by_meaning = self._by_meaning(count)
            if self.parsed.phrases:
                by_meaning = [placed for placed in by_meaning if placed.key in {each.key for each in by_words}]
            if all(self.shown[source_id].edition == each.edition for source_id, each in before.items()):
                break
        return fuse_placed(by_words, by_meaning)

    def _settle(
        self, collection: str, query: str | list[float], fields: Sequence[str], limit: int, wanted: str | None = None
    ) -> Settled:
        def ask(passed_over: Sequence[str]) -> list[tuple[float, schema.Row]]:
            return self.server.search(
                collection,
                query,
                schema.every(self._scope(passed_over), wanted),
                fields,
                limit=limit,
                deadline_s=self.query.deadline_s,
            )

        settled = settle(self.server, self.team_id, ask, limit, self.now_ms, self.query.deadline_s)
        self.shown |= settled.shown
        return settled

    def _scope(self, passed_over: Sequence[str]) -> str:
        """Build a filter for the query's buckets and sources, which leaves out the editions `passed_over`."""
        query = self.query
        return schema.every(
            schema.equals("team_id", self.team_id),
            None if query.bucket_ids is None else schema.within_buckets(query.bucket_ids),
            None if query.source_ids is None else schema.among("source_id", query.source_ids),
            schema.outside("edition", passed_over) if passed_over else None,
        )

    def _list_languages(self) -> list[str]:
        """List the languages of the team's documents that have stems; often these are English alone."""
        documents = self.server.collections.documents
        others = schema.outside("language", ("", "en"))
        if not self._count("languages", others, documents):
            return ["en"]
        return [
            each for each in STEMMERS if self._count(f"language {each}", schema.equals("language", each), documents)
        ]

    def _list_gaps(self, having: Mapping[str, int]) -> Iterator[str]:
        """List warnings about what a search on Milvus can't do."""
        missing = [word.text for word in self.parsed.words if word.weight > LITTLE and not having[word.text]]
        if missing:
            yield f"No passage has {', '.join(missing)}; an index on Milvus suggests no other words."
        if self.is_cut:
            yield "On Milvus, quoted phrases are searched only in the passages that match their words best."

    def _count(self, name: str, wanted: str | None, collection: str = "") -> int:
        """Count the team's chunks, or those in `counted_in`, that match the filter; cached under `name`."""
        buckets = None if collection else self.query.counted_in
        of_team = schema.every(
            schema.equals("team_id", self.team_id),
            None if buckets is None else schema.within_buckets(buckets),
            wanted,
        )
        count = partial(
            self.server.count,
            collection or self.server.collections.chunks,
            of_team,
            is_estimate=True,
            deadline_s=self.query.deadline_s,
        )
        return self.counts.get(f"{name} in {' '.join(buckets)}" if buckets else name, self.server.clock(), count)

    def _count_vectors(self) -> contract.VectorCount:
        query = self.query
        model = query.vector.model if query.vector else ""
        return embeddings.count_missing(
            self.server, self.team_id, model, query.bucket_ids, query.source_ids, query.deadline_s
        )

    def _match(self, rank: int | None, cosine: float) -> contract.SemanticMatch:
        model = self.query.vector.model if self.query.vector else ""
        return contract.SemanticMatch(rank=rank, cosine=min(1.0, max(-1.0, cosine)), model=model)

    def _read_texts(self, keys: Sequence[Key]) -> dict[Key, str]:
        texts: dict[Key, str] = {}
        for key in keys:
            chunk = unpack_chunk(self.rows[key])
            texts[key] = " ".join((self.shown[key[0]].title, *chunk.headings, chunk.text))
        return texts

    def _read_hits(self, mode: contract.SearchMode, order: Sequence[Placed[Key]]) -> Iterator[contract.Hit]:
        unread = self._row_ids([placed.key for placed in order if placed.key not in self.rows])
        collection, deadline_s = self.server.collections.chunks, self.query.deadline_s
        rows = chunks.read_rows(self.server, collection, self.team_id, unread, HIT_FIELDS, deadline_s)
        self.rows |= {_key(row): row for row in rows.values()}
        # Hits that only the keyword search found have no cosine yet.
        others = [placed.key for placed in order if placed.semantic is None]
        cosines = self._measure(others) if mode is contract.SearchMode.HYBRID else {}
        for rank, placed in enumerate(order, start=self.query.offset + 1):
            row, semantic = self.rows.get(placed.key), placed.semantic
            if row is None:
                # The document was removed after the search.
                continue
            if semantic is None and placed.key in cosines:
                semantic = self._match(None, cosines[placed.key])
            terms = PackedTerms(row["terms"])
            matched = [word for word in self.parsed.words if terms.weigh(word)[0]]
            covered = coverage(self.weights, [word.text for word in matched])
            edition, chunk = self.shown[placed.key[0]], unpack_chunk(row)
            parts = _find_parts(edition, chunk, matched) if self.query.explain else {}
            found = PlaceFinder(matched).find(chunk.text, edition.language)
            yield contract.Hit(
                chunk_id=contract.chunk_id(edition.source_id, edition.generation, chunk.ordinal),
                source_id=edition.source_id,
                generation=edition.generation,
                bucket_ids=edition.bucket_ids,
                highlights=merge_spans(span for spans in found for span in spans),
                chunk=chunk,
                score=score_hit(mode, covered, semantic),
                rank=rank,
                matches=tuple(
                    contract.TermMatch(term=word.text, idf=self.weights[word.text], parts=parts.get(word.text, ()))
                    for word in matched
                ),
                coverage=covered,
                keyword=placed.keyword,
                semantic=semantic,
                fused=placed.fused,
            )

    def _measure(self, keys: Sequence[Key]) -> dict[Key, float]:
        """Compute the cosine of the query and each of these chunks that has a vector."""
        vector = self.query.vector
        collection = self.server.find_vectors(len(vector.values) // embeddings.FLOAT_BYTES) if vector else None
        if vector is None or collection is None or not keys:
            return {}
        found = self.server.search(
            collection,
            embeddings.read_vector(vector.values),
            schema.every(
                self._scope(()), schema.equals("model", vector.model), schema.among("id", self._row_ids(keys))
            ),
            _VECTOR_FIELDS,
            limit=len(keys),
            deadline_s=self.query.deadline_s,
        )
        return {_key(row): cosine for cosine, row in found}

    def _row_ids(self, keys: Sequence[Key]) -> list[str]:
        return [
            schema.chunk_row_id(self.team_id, source_id, self.shown[source_id].edition, ordinal)
            for source_id, ordinal in keys
        ]


def _key(row: schema.Row) -> Key:
    return row["source_id"], row["ordinal"]


def _by_score(item: tuple[Key, float]) -> tuple[float, Key]:
    """Sort key: the best score first, equal scores by source and ordinal."""
    return -item[1], item[0]


def _having(ways: Iterable[Sequence[str]]) -> str:
    """Build a filter for chunks that may have a word or a phrase, which can be written in these ways."""
    return schema.having_any([[encode_term(term) for term in way] for way in dict.fromkeys(map(tuple, ways))])


def _find_parts(edition: Edition, chunk: Chunk, words: Sequence[QueryWord]) -> dict[str, tuple[contract.Part, ...]]:
    """For each word, find the chunk's parts (title, headings, text) that contain it."""
    texts = (edition.title, "\n".join(chunk.headings), chunk.text)
    finder = PlaceFinder(words)
    found = [finder.find(text, edition.language) for text in texts]
    return {
        word.text: tuple(part for part, places in zip(PARTS, found, strict=True) if places[number])
        for number, word in enumerate(words)
    }
