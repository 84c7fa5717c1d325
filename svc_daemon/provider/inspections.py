"""Inspecting a provider's indexes while the service is not running: what they hold, and whether they are whole.

Beside the contract, since it must change nothing and finds damage where the contract would raise.
"""

from typing import NamedTuple, Protocol

from svc_daemon.core.problems import Problem


class InspectedDocument(NamedTuple):
    """A document that the index shows."""

    source_id: str
    generation: int
    title: str
    #: Sorted.
    bucket_ids: tuple[str, ...]
    #: How many chunks the document has.
    chunks: int


class Inspector(Protocol):
    """Looks at the indexes of all teams and changes nothing."""

    def list_teams(self) -> list[str]:
        """The teams that have an index."""
        ...

    def check_index(self, team_id: str, *, read_data: bool) -> list[Problem]:
        """What is wrong within the index; with `read_data` every text and posting is read too."""
        ...

    def list_documents(self, team_id: str) -> dict[str, InspectedDocument]:
        """Every document of an index that `check_index` found whole, by source id; none where there is no index."""
        ...
