"""The exceptions that a search provider may raise.

ProviderError           any failure, and whether the call can be retried
 ├─ DocumentMissing     the document is not in the index and must be indexed first
 ├─ IndexBuilding       the words of a team's index are indexed again
 ├─ SearchTimeout       the search reached its deadline and was interrupted
 └─ ProviderFailed      the provider itself failed: disk error, damage, or unreachable
         └─ IndexDamaged    a team's index is damaged and must be rebuilt
"""

from svc_daemon.provider.contract import Building


class ProviderError(Exception):
    """A call to a search provider failed. If `retryable`, the same call may succeed later."""

    def __init__(self, message: str, *, retryable: bool) -> None:
        self.retryable = retryable
        super().__init__(message)


class DocumentMissing(ProviderError):
    """The index lacks the document, or has another generation of it."""

    def __init__(self, source_id: str, generation: int | None = None) -> None:
        which = source_id if generation is None else f"{source_id}, generation {generation},"
        super().__init__(f"{which} is not in the search index; index it again.", retryable=False)


class SearchTimeout(ProviderError):
    """The search was interrupted at its deadline."""

    def __init__(self) -> None:
        super().__init__("The search took too long; narrow it down or try again.", retryable=True)


class IndexBuilding(ProviderError):
    """The postings of a team's index are rebuilt from its texts. Searches are refused meanwhile."""

    def __init__(self, team_id: str, building: Building) -> None:
        self.building = building
        super().__init__(
            f"The words of {team_id} are indexed again: {building.done} of {building.total} passages.", retryable=True
        )


class ProviderFailed(ProviderError):
    """The provider failed; the message has the reason and any remedy."""


class IndexDamaged(ProviderFailed):
    """The team's index is damaged or of another release, and must be rebuilt."""

    def __init__(self, team_id: str, reason: str) -> None:
        message = (
            f"The search index of {team_id} can't be used ({reason}). It is rebuilt from the stored files; if "
            f"that does not start by itself, run `svc-daemon team rebuild {team_id}`."
        )
        super().__init__(message, retryable=True)
