"""How long an export waits for vectors, decided from what the service reports."""

from collections.abc import Sequence
from typing import Any

import pytest

from svc_cli.exports.exporting import LONGEST_LOOK_S, LOOK_S, STALLED_S, wait_embedded
from svc_cli.progress import Silent


class Service:
    """Reports one number of passages without a vector after the other, and the last one for ever."""

    def __init__(self, missing: Sequence[int], state: str) -> None:
        self.missing, self.state, self.looks = missing, state, 0

    def bucket_vectors(self, bucket: str) -> dict[str, Any]:
        place = min(self.looks, len(self.missing) - 1)
        self.looks += 1
        return {"bucket_id": bucket, "state": self.state, "missing": self.missing[place], "passages": 9}


def looks(*missing: int, state: str = "ready", timeout_s: float | None = None) -> int:
    """How often an export looks before it goes on, by a clock that only its own pauses move."""
    service, passed_s = Service(missing, state), 0.0

    def sleep(seconds: float) -> None:
        nonlocal passed_s
        passed_s += seconds

    client: Any = service
    wait_embedded(client, "b", Silent(), timeout_s, sleep=sleep, clock=lambda: passed_s)
    return service.looks


@pytest.mark.rule("export.waits-vectors")
def test_an_export_waits_for_vectors_as_long_as_there_are_more_to_come() -> None:
    assert [looks(0), looks(9, state="off"), looks(9, state="failing"), looks(9, 5, 5, 1, 0)] == [1, 1, 1, 5]
    assert looks(9, timeout_s=1) < 1 / LOOK_S + 5
    # Without a change it looks less and less often, and then stops.
    assert STALLED_S / LONGEST_LOOK_S < looks(9, 5, state="loading") < STALLED_S / LOOK_S / 3
