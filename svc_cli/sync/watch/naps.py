"""Whether the machine was asleep: a clock that goes on in sleep moves ahead of one that stands still. Pure."""

from dataclasses import dataclass

#: Clocks that differ by less were only read one after the other.
NAP_S = 2.0


@dataclass(slots=True)
class Naps:
    """Two clocks, one of which stands still while the machine sleeps."""

    _ahead_s: float | None = None

    def has_slept(self, waking_s: float, all_s: float) -> bool:
        """Whether there was a sleep since the last call. `waking_s` stands still in sleep, `all_s` goes on."""
        ahead_s, before_s = all_s - waking_s, self._ahead_s
        self._ahead_s = ahead_s
        return before_s is not None and ahead_s - before_s > NAP_S
