"""Waiting for sources: when it ends, and how little it asks."""

from collections.abc import Mapping
from typing import Any

import pytest

from svc_cli.client.waiting import FEW, LONGEST_PAUSE_S, Watch, wait_until_settled
from svc_cli.errors import ApiError, WaitTimedOut

Json = dict[str, Any]
NAMES = [f"src_{number:04}" for number in range(2000)]


class Service:
    """Sources that become something at a moment of a clock, asked through the reader's two methods."""

    def __init__(self, ends: dict[str, tuple[float, str]]) -> None:
        #: By id: the second at which it ends, and how: `ready`, `failed`, `gone`.
        self.ends = ends
        self.now_s = 0.0
        self.pauses: list[float] = []
        self.asked = 0
        self.listed = 0

    def source(self, source_id: str) -> Json:
        self.asked += 1
        state = self._state(source_id)
        if state == "gone":
            raise ApiError(404, {"code": "source_not_found", "details": {"replaced_by": "src_next"}})
        return {"id": source_id, "status": "active" if state == "ready" else state, "ready": state == "ready"}

    def sources_page(self, bucket: str, filters: Mapping[str, str | int] | None = None) -> Json:
        """The bucket's list from an id on, as the service pages it; what is gone is not in it."""
        asked = filters or {}
        assert (bucket, asked["status"]) == ("handbook", "all")
        self.listed += 1
        later = [key for key in sorted(self.ends) if key > str(asked["after"]) and self._state(key) != "gone"]
        page = [self.source(key) for key in later[: int(asked["limit"])]]
        self.asked -= len(page)
        return {"sources": page, "has_more": len(page) < len(later), "last_id": page[-1]["id"] if page else None}

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now_s += seconds

    def wait(self, watch: Watch, timeout_s: float | None = None) -> dict[str, Json]:
        return wait_until_settled(self, watch, timeout_s=timeout_s, sleep=self.sleep, clock=lambda: self.now_s)

    def _state(self, source_id: str) -> str:
        moment_s, state = self.ends[source_id]
        return state if self.now_s >= moment_s else "indexing"


def test_one_small_file_is_seen_within_milliseconds() -> None:
    service = Service({"a": (0.015, "ready")})
    assert service.wait(Watch(["a"]))["a"]["ready"] is True
    assert service.now_s < 0.05


def test_the_pause_grows_to_a_second_and_starts_again_when_something_happens() -> None:
    service = Service({"a": (20, "ready"), "b": (40, "ready")})
    service.wait(Watch(["a", "b"]))
    assert max(service.pauses) == LONGEST_PAUSE_S
    assert service.asked < 2 * 2 * 40
    assert min(service.pauses[6:]) < 0.05


def test_failed_and_gone_end_the_wait_too() -> None:
    service = Service({"a": (1, "failed"), "b": (1, "gone"), "c": (1, "ready")})
    seen = service.wait(Watch(["a", "b", "c"]))
    assert [seen[key]["status"] for key in "abc"] == ["failed", "gone", "active"]
    assert seen["b"]["replaced_by"] == "src_next"


def test_many_are_watched_through_their_bucket_and_never_asked_for_one_by_one() -> None:
    service = Service({name: (number / 100, "ready") for number, name in enumerate(NAMES[:1000])})
    seen = service.wait(Watch(NAMES[:1000], "handbook"))
    assert all(source["ready"] for source in seen.values())
    assert service.asked <= FEW * 10
    assert service.listed < 60


def test_only_one_that_left_the_bucket_is_asked_for_by_itself() -> None:
    gone = {NAMES[7], NAMES[250], NAMES[299]}
    service = Service({name: (1, "gone" if name in gone else "ready") for name in NAMES[:300]})
    seen = service.wait(Watch(NAMES[:300], "handbook"))
    assert {name for name in seen if seen[name]["status"] == "gone"} == gone
    assert service.asked == len(gone)
    service = Service(dict.fromkeys(NAMES, (0, "ready")))
    assert set(service.wait(Watch(NAMES[::100], "handbook"))) == set(NAMES[::100]), "others are read over"
    assert service.asked == 0


def test_a_time_out_names_what_is_left() -> None:
    service = Service({"a": (1, "ready"), "b": (100, "ready")})
    watch = Watch(["a", "b"])
    with pytest.raises(WaitTimedOut) as late:
        service.wait(watch, timeout_s=5)
    assert (late.value.details, late.value.hint) == ({"source_ids": ["b"]}, "svc wait b")
    assert watch.seen["a"]["ready"] is True
    assert 5 <= service.now_s < 6.5


def test_another_error_is_passed_on() -> None:
    class Refusing(Service):
        def source(self, source_id: str) -> Json:
            raise ApiError(401, {"code": "invalid_project_key"})

    with pytest.raises(ApiError, match="answered 401"):
        Refusing({"a": (0, "ready")}).wait(Watch(["a"]))
