"""The operator's search switch: it turns searches of all teams off until it is turned on, also over restarts."""

from typing import Any

import pytest

from tests.api.answers import details_of
from tests.api.daemons import Daemon
from tests.api.fixtures import MakeDaemon


def switch(daemon: Daemon, method: str = "PUT", **body: Any) -> dict[str, Any]:
    operator = {"Authorization": f"Bearer {daemon.operator_token}"}
    answer = daemon.ask(method, "/admin/search", headers=operator, json=body)
    assert answer.status_code == 200, answer.text
    return {name: value for name, value in answer.json().items() if name != "request_id"}


@pytest.mark.rule("search_disabled")
def test_search_is_refused_while_switched_off_even_after_a_restart(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon()
    daemon.make_bucket()
    daemon.make_bucket("second")
    assert switch(daemon, "GET") == {"object": "search_switch", "enabled": True, "retry_after_seconds": None}
    off = switch(daemon, enabled=False, retry_after_seconds=90)
    assert off == switch(daemon, "GET") == {"object": "search_switch", "enabled": False, "retry_after_seconds": 90}
    for answer in (
        daemon.search("umber"),
        daemon.search("umber", buckets=["inbox"], agent="svc-agent"),
        daemon.search("umber", key=daemon.add_team()),
        daemon.ask("GET", "/v1/search", params={"q": "umber"}),
    ):
        assert details_of(answer, "search_disabled") == {"retry_after_seconds": 90}
        assert answer.headers["Retry-After"] == "90"
    assert daemon.ask("GET", "/v1/buckets").is_success
    switch(daemon, enabled=False, retry_after_seconds=5)
    daemon.close()
    daemon = make_daemon()
    assert details_of(daemon.search("umber"), "search_disabled") == {"retry_after_seconds": 5}
    assert switch(daemon, enabled=True)["enabled"]
    assert daemon.search("umber").is_success
