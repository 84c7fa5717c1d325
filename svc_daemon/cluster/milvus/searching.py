"""Keyword, semantic and hybrid search in Milvus."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from svc_daemon.cluster.milvus import chunks, embeddings, schema
from svc_daemon.cluster.milvus.chunks import HIT_FIELDS, Settled, TeamCounts, settle
from svc_daemon.cluster.milvus.editions import Edition
from svc_daemon.cluster.milvus.packing import list_stems, stem, unpack_chunk
from svc_daemon.cluster.milvus.server import MilvusServer
from svc_daemon.core.search.ranking import POOL, coverage, idf
from svc_daemon.core.text.chunking import Chunk
from svc_daemon.core.text.words import parse_query
from svc_daemon.provider import contract
from svc_daemon.provider.errors import SearchTimeout
from svc_daemon.provider.ranked_chunks import CANDIDATES, PARTS, Placed, fuse_placed, list_warnings, refine, score_hit

#: Identifies a found chunk by its source's id and its ordinal.
Key = tuple[str, int]
#: Fields of a vector's row that a search reads.
_VECTOR_FIELDS = ("source_id", "edition", "ordinal")
#: Maximum number of attempts at a hybrid search, if documents change between its keyword and its semantic search.
ROUNDS = 3


@dataclass(slots=True, kw_only=True)
class MilvusSearch:
    """The state of one search while it runs."""

    server: MilvusServer
    team_id: str
    query: contract.SearchQuery
    counts: TeamCounts
    #: Returns the time in milliseconds since 1970, as in `Edition.stamped_ms`.
    now_ms: Callable[[], int]
    #: The version of each found document that searches see, by source id.
    shown: dict[str, Edition] = field(default_factory=dict)
    #: The rows of the chunks read so far.
    rows: dict[Key, schema.Row] = field(default_factory=dict)

    def run(self) -> contract.HitPage:
        query = self.query
        if query.deadline_s is not None and self.server.clock() >= query.deadline_s:
            raise SearchTimeout
        parsed = parse_query(query.text)
        mode = query.mode if query.vector is not None else contract.SearchMode.KEYWORD
        if any(ids is not None and not ids for ids in (query.bucket_ids, query.source_ids)):
            return contract.HitPage(mode=mode)
        total = self._count("", None)
        if not total:
            return contract.HitPage(mode=mode)
        weights = {word: idf(total, self._count(stem(word), schema.having_word(stem(word)))) for word in parsed.words}
        order = {
            contract.SearchMode.KEYWORD: self._by_words,
            contract.SearchMode.SEMANTIC: self._by_meaning,
            contract.SearchMode.HYBRID: self._by_both,
        }[mode](list(weights), query.offset + query.limit + 1)[query.offset :]
        return contract.HitPage(
            hits=tuple(self._read_hits(mode, weights, order[: query.limit])),
            has_more=len(order) > query.limit,
            mode=mode,
            warnings=tuple(list_warnings(query, parsed, mode, self._count_vectors)),
            chunks=total,
        )

    def _by_words(self, words: Sequence[str], count: int) -> list[Placed[Key]]:
        if not words:
            return []
        stems = [stem(word) for word in words]
        limit = max(POOL, count)
        found = self._settle(self.server.collections.chunks, " ".join(stems), HIT_FIELDS, limit)
        ranked = sorted(((_key(row), score) for score, row in found.rows), key=_by_score)
        self.rows |= {_key(row): row for _, row in found.rows}
        whole = {key for key, _ in ranked[:POOL] if {*stems} <= {*self.rows[key]["stems"].split()}}
        return refine(ranked, whole, self._read_texts)[:count]

    def _by_meaning(self, _: Sequence[str], count: int) -> list[Placed[Key]]:
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

    def _by_both(self, words: Sequence[str], count: int) -> list[Placed[Key]]:
        """Merge the keyword and the semantic ranking: the best `CANDIDATES` of each, or more if the page needs more."""
        count = max(CANDIDATES, count)
        for _ in range(ROUNDS):
            by_words = self._by_words(words, count)
            before = dict(self.shown)
            by_meaning = self._by_meaning(words, count)
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

    def _count(self, name: str, wanted: str | None) -> int:
        """Count the team's chunks that match the filter; cached under `name`."""
        of_team = schema.every(schema.equals("team_id", self.team_id), wanted)
        count = partial(
            self.server.count,
            self.server.collections.chunks,
            of_team,
            is_estimate=True,
            deadline_s=self.query.deadline_s,
        )
        return self.counts.get(name, self.server.clock(), count)

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

    def _read_hits(
        self, mode: contract.SearchMode, weights: Mapping[str, float], order: Sequence[Placed[Key]]
    ) -> Iterator[contract.Hit]:
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
            stems = {*row["stems"].split()}
            matched = [word for word in weights if stem(word) in stems]
            covered = coverage(weights, matched)
            edition, chunk = self.shown[placed.key[0]], unpack_chunk(row)
            parts = _find_parts(edition.title, chunk, matched) if self.query.explain else {}
            yield contract.Hit(
                chunk_id=contract.chunk_id(edition.source_id, edition.generation, chunk.ordinal),
                source_id=edition.source_id,
                generation=edition.generation,
                bucket_ids=edition.bucket_ids,
                chunk=chunk,
                score=score_hit(mode, covered, semantic),
                rank=rank,
                matches=tuple(
                    contract.TermMatch(term=word, idf=weights[word], parts=parts.get(word, ())) for word in matched
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


def _find_parts(title: str, chunk: Chunk, words: Sequence[str]) -> dict[str, tuple[contract.Part, ...]]:
    """For each word, find the chunk's parts (title, headings, text) that contain it."""
    stems = {
        "title": {*list_stems(title)},
        "headings": {*list_stems(" ".join(chunk.headings))},
        "text": {*list_stems(chunk.text)},
    }
    return {word: tuple(part for part in PARTS if stem(word) in stems[part]) for word in words}
