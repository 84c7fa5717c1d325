"""What a search provider may raise, and nothing else.

ProviderError           whatever went wrong, and whether trying again can help
 ├─ DocumentMissing     the index holds no such document: put it first
 ├─ SearchTimeout       the search reached its deadline and was interrupted
 └─ ProviderFailed      the provider itself is in trouble: disk, damage, or not to be reached
         └─ IndexDamaged    a team's index is not what was written: only making it again helps
"""


class ProviderError(Exception):
    """Anything that a provider could not do. `retryable` is whether the same call may succeed later."""

    def __init__(self, message: str, *, retryable: bool) -> None:
        self.retryable = retryable
        super().__init__(message)


class DocumentMissing(ProviderError):
    """The document, in the generation that was named, is not in the index."""

    def __init__(self, source_id: str, generation: int | None = None) -> None:
        which = source_id if generation is None else f"{source_id}, generation {generation},"
        super().__init__(f"{which} is not in the search index; index it again.", retryable=False)


class SearchTimeout(ProviderError):
    """The search was interrupted at its deadline."""

    def __init__(self) -> None:
        super().__init__("The search took longer than it may; narrow it down or try again.", retryable=True)


class ProviderFailed(ProviderError):
    """The provider is in trouble; the message has the reason and, where there is one, the remedy."""


class IndexDamaged(ProviderFailed):
    """The team's index can't be used: damaged, or made by another release. It is to be made again."""

    def __init__(self, team_id: str, reason: str) -> None:
        message = (
            f"The search index of {team_id} can't be used ({reason}). It is made again from the stored files; where "
            f"that does not begin by itself, run `svc-daemon team rebuild {team_id}`."
        )
        super().__init__(message, retryable=True)
