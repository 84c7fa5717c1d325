"""A daemon with low limits on descriptors or memory."""

import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from svc_daemon.server.sockets import MOST_DESCRIPTORS
from tests.acceptance.calls import make_bucket, upload, wait_ended
from tests.acceptance.installations import PATIENCE_S, Installation
from tests.api.servers import is_closed
from tests.conftest import UNLIMITED, MakeInstallation
from tests.limits import limited

IDLE_SOCKETS = 1200


def under(limit: str) -> tuple[str, ...]:
    """Return a command prefix that sets a limit with the shell's `ulimit`."""
    return ("sh", "-c", f'ulimit {limit} && exec "$@"', "sh")


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    """Raise this process's descriptor limit for the idle sockets."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < IDLE_SOCKETS + 200:
        pytest.skip(f"this process may open {hard} files")
    with limited(resource.RLIMIT_NOFILE, max(soft, IDLE_SOCKETS + 200)):
        yield


@pytest.fixture
def small(make_installation: MakeInstallation) -> Installation:
    """An installation that is not started yet, with a header timeout longer than any test."""
    return make_installation(**UNLIMITED, SVC_LIMIT_HEADER_SECONDS="600")


@pytest.mark.parametrize("limit", ["-Sn 1024", "-n 256"])
def test_1200_idle_connections_block_no_client_and_log_one_warning(
    small: Installation, many_descriptors: None, limit: str
) -> None:
    small.start(under(limit))
    address = ("127.0.0.1", int(small.base_url.rpartition(":")[2]))
    with ExitStack() as stack:
        make_bucket(stack.enter_context(small.client()), "inbox")
        idle = [stack.enter_context(socket.create_connection(address)) for _ in range(IDLE_SOCKETS)]
        with small.client() as newcomer:
            newcomer.get("/v1/buckets").raise_for_status()
            upload(newcomer, "inbox", "a.md", b"The quay.").raise_for_status()
        assert is_closed(idle[0])
    (warning,) = [line["message"] for line in small.log_lines() if line["level"] not in ("debug", "info")]
    assert "connections are open" in warning
    assert small.printed() == ""


def test_daemon_raises_its_soft_limits_of_descriptors_and_memory(small: Installation) -> None:
    small.start(under("-Sn 200 && ulimit -Sv 800000"))
    soft, hard = resource.prlimit(small.pid or 0, resource.RLIMIT_NOFILE)
    assert soft == min(hard, MOST_DESCRIPTORS)
    with small.client() as client:
        make_bucket(client, "inbox")
        source_id = upload(client, "inbox", "a.md", b"The quay.").json()["id"]
        assert wait_ended(client, source_id)["ready"] is True


def test_start_with_too_low_limits_fails_with_a_sentence_that_svc_repeats(small: Installation) -> None:
    for limit, sentence in (("-n 64", "may open only 64 files"), ("-v 800000", "only 781 MB of address space")):
        assert small.spawn_daemon(under(limit)).wait(PATIENCE_S) == 1
        assert sentence in small.printed().splitlines()[-1], limit
    assert small.printed().count("\n") == 2
    command = [*under("-v 800000"), sys.executable, "-m", "svc_cli", "bucket", "ls"]
    ended = subprocess.run(command, env=small.environ, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, "only 781 MB of address space" in ended.stderr) == (12, True)
