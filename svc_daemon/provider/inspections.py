"""The interface for inspecting search indexes: their documents and integrity.

An inspection changes nothing, and reports damage instead of raising an error.
"""

from typing import NamedTuple, Protocol

from svc_daemon.core.problems import Problem


class InspectedDocument(NamedTuple):
    """A document that searches find."""

    source_id: str
    generation: int
    title: str
    #: The document's buckets, sorted.
    bucket_ids: tuple[str, ...]
    #: Number of chunks.
    chunks: int


class Inspector(Protocol):
    """Inspects the indexes of all teams without changing anything."""

    def list_teams(self) -> list[str]:
        """List the teams that have an index."""
        ...

    def check_index(self, team_id: str, *, read_data: bool) -> list[Problem]:
        """Find problems in the team's index. With `read_data`, also read all texts and words."""
        ...

    def list_documents(self, team_id: str) -> dict[str, InspectedDocument]:
        """Return all documents by source id. Call this only if `check_index` has found no damage."""
        ...
