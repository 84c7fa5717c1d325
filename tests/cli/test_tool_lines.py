"""How a tool of `svc mcp` reaches the service: anew each time, again where the line dies, and told where it can't."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

from svc_cli.client.api import Client
from svc_cli.client.retries import RetryPolicy
from svc_cli.errors import DaemonUnreachable
from svc_cli.tools.folders import Folders
from svc_cli.tools.services import run_tool
from svc_daemon.tools.catalogue import TOOLS
from svc_daemon.tools.services import CallFailed
from tests.cli.odd_servers import OddServer

LIST = next(tool for tool in TOOLS if tool.name == "svc-list-buckets")
ONCE = RetryPolicy(attempts=1)
NOBODY = "http://127.0.0.1:1"


def connecting(*addresses: str) -> Callable[[], AbstractContextManager[Client]]:
    """Connections to these addresses, one after the other; then nobody is there."""
    left = list(addresses)

    @contextmanager
    def connect() -> Iterator[Client]:
        if not left:
            raise DaemonUnreachable("Nobody answers.", hint="start it.")
        with Client(left.pop(0), "sk-test", policy=ONCE) as client:
            yield client

    return connect


def list_buckets(connect: Callable[[], AbstractContextManager[Client]]) -> Any:
    return asyncio.run(run_tool(connect, Folders([]), LIST, {}))


def test_each_call_connects_anew(odd: OddServer) -> None:
    odd.answers["GET /v1/buckets"] = (200, {"buckets": []}, {})
    connect = connecting(odd.url, odd.url)
    assert [list_buckets(connect).buckets for _ in range(2)] == [[], []]
    with pytest.raises(CallFailed) as failed:
        list_buckets(connect)
    assert failed.value.error["code"] == "svc_daemon_unreachable"
    assert (failed.value.error["retryable"], failed.value.error["hint"]) == (True, "start it.")


def test_a_dead_line_is_connected_once_more(odd: OddServer) -> None:
    odd.answers["GET /v1/buckets"] = (200, {"buckets": []}, {})
    assert list_buckets(connecting(NOBODY, odd.url)).buckets == []
    with pytest.raises(CallFailed) as failed:
        list_buckets(connecting(NOBODY, NOBODY, odd.url))
    assert failed.value.code == "svc_network_failed"


def test_an_answer_that_makes_no_sense_is_told_as_such(odd: OddServer) -> None:
    nonsense: list[Any] = [(200, {"buckets": [{"id": "bkt_x"}]}, {}), (200, b"<html>", {})]
    for answer in nonsense:
        odd.answers["GET /v1/buckets"] = answer
        with pytest.raises(CallFailed) as failed:
            list_buckets(connecting(odd.url))
        assert failed.value.code == "svc_bad_answer"
