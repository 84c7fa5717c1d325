"""Inspects the index in Milvus without changing it, while nodes may be writing to it.

Documents are listed before and after their chunks. Only documents that were the same both times are checked.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from svc_daemon.cluster.milvus import editions
from svc_daemon.cluster.milvus.chunks import HIT_FIELDS
from svc_daemon.cluster.milvus.editions import Edition
from svc_daemon.cluster.milvus.packing import pack_terms, unpack_chunk
from svc_daemon.cluster.milvus.schema import equals
from svc_daemon.cluster.milvus.server import MilvusServer
from svc_daemon.core.problems import Problem, Repair
from svc_daemon.provider.contract import InspectedDocument

#: The violated invariant, such as `I7`, and a description.
Finding = tuple[str, str]


class MilvusInspector:
    """Checks the indexes of all teams in Milvus."""

    def __init__(self, server: MilvusServer) -> None:
        self._server = server

    def list_teams(self) -> list[str]:
        return editions.list_teams(self._server)

    def list_documents(self, team_id: str) -> dict[str, InspectedDocument]:
        return {
            source_id: InspectedDocument(source_id, shown.generation, shown.title, shown.bucket_ids, shown.chunks)
            for source_id, shown in self._read_shown(team_id)[0].items()
        }

    def check_index(self, team_id: str, *, read_data: bool) -> list[Problem]:
        about = {"team_id": team_id}
        return [
            Problem(invariant, f"the search index of {team_id}: {message}", Repair.REBUILD_INDEX, about)
            for invariant, message in self._check(team_id, read_data)
        ]

    def _read_shown(self, team_id: str) -> tuple[dict[str, Edition], set[str]]:
        """Return the edition that searches see, by source id, and the names of all editions."""
        shown: dict[str, Edition] = {}
        names = set()
        # A source's editions are listed oldest first, so `shown` gets its last shown edition.
        for each in editions.list_all(self._server, team_id):
            names.add(each.edition)
            if each.is_shown:
                shown[each.source_id] = each
        return shown, names

    def _check(self, team_id: str, read_data: bool) -> Iterator[Finding]:
        before, named = self._read_shown(team_id)
        chunks, embedded = self._count_rows(self._server.collections.chunks, team_id)
        vectors: Counter[str] = Counter()
        for collection in self._server.list_vector_collections():
            vectors += self._count_rows(collection, team_id)[0]
        after, named_after = self._read_shown(team_id)
        named |= named_after
        for what, counted in (("chunks", chunks), ("vectors", vectors)):
            left = sum(count for edition, count in counted.items() if edition not in named)
            if left:
                yield "I8", f"there are {left} {what} of documents that are not there"
        checked = [shown for source_id, shown in before.items() if after.get(source_id) == shown]
        for shown in checked:
            if chunks[shown.edition] != shown.chunks:
                found = chunks[shown.edition]
                yield "I7", f"the document of {shown.source_id} has {found} chunks, its row counts {shown.chunks}"
            if vectors[shown.edition] != embedded[shown.edition]:
                found, expected = vectors[shown.edition], embedded[shown.edition]
                yield "I7", f"the document of {shown.source_id} has {found} vectors, its chunks name {expected}"
        if read_data:
            yield from self._check_words(team_id, checked)

    def _count_rows(self, collection: str, team_id: str) -> tuple[Counter[str], Counter[str]]:
        """Count the rows of each edition, and its rows that name a model."""
        rows, named = Counter[str](), Counter[str]()
        for row in self._server.list_sorted(collection, equals("team_id", team_id), ("edition", "model")):
            rows[row["edition"]] += 1
            named[row["edition"]] += bool(row["model"])
        return rows, named

    def _check_words(self, team_id: str, checked: Sequence[Edition]) -> Iterator[Finding]:
        """Check that each chunk's indexed words match its text."""
        by_name = {shown.edition: shown for shown in checked}
        # Don't query each edition by itself: Milvus takes up to a fifth of a second, however few rows it returns.
        rows = self._server.list_sorted(self._server.collections.chunks, equals("team_id", team_id), HIT_FIELDS)
        for name, of_edition in groupby(rows, key=lambda row: str(row["edition"])):
            if (shown := by_name.get(name)) is None:
                continue
            chunks = ((row["terms"], unpack_chunk(row)) for row in of_edition)
            title, language = shown.title, shown.language
            wrong = sum(terms != pack_terms(title, each.headings, each.text, language) for terms, each in chunks)
            if wrong:
                yield "I6", f"{wrong} chunks of {shown.source_id} are not found by their words"
