"""What the creates have in common whose work two doors share."""

from dataclasses import dataclass

from svc_daemon.core.idempotency import Claim
from svc_daemon.operations.replays import Repeatable
from svc_daemon.store.keys import Key


@dataclass(frozen=True, slots=True)
class Creating:
    """A create at one door."""

    #: Who asks.
    key: Key
    repeat_key: str | None
    #: Method and route template: an idempotency key belongs to one of them.
    route: str

    def claiming(self, fingerprint: str | None) -> Repeatable:
        """The create as `replaying` takes it; None where the key alone decides."""
        return Repeatable(self.key, self.repeat_key, Claim(route=self.route, fingerprint=fingerprint))
