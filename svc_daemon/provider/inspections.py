"""The interface for inspecting search indexes while the service is not running: their documents and integrity.

It is separate from the interface of search providers, because an inspection must not change anything, and because it
reports damage instead of raising an error.
"""

from typing import NamedTuple, Protocol

from svc_daemon.core.problems import Problem


class InspectedDocument(NamedTuple):
    """A document that searches of the index can find."""

    source_id: str
    generation: int
    title: str
    #: Ids of the document's buckets, sorted.
    bucket_ids: tuple[str, ...]
    #: Number of the document's chunks.
    chunks: int


class Inspector(Protocol):
    """Inspects the indexes of all teams without changing anything."""

    def list_teams(self) -> list[str]:
        """List the teams that have an index."""
        ...

    def check_index(self, team_id: str, *, read_data: bool) -> list[Problem]:
        """Find problems in the team's index. With `read_data`, also read every text and every list of words."""
        ...

    def list_documents(self, team_id: str) -> dict[str, InspectedDocument]:
        """Return all documents by source id. Call this only if `check_index` has found no damage.

        The result is empty if there is no index.
        """
        ...
