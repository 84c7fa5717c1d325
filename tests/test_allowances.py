"""A daemon that the system gives few descriptors or little memory."""

import json
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from svc_daemon.allowances import MOST_DESCRIPTORS
from tests.acceptance.installations import Installation, wait_until
from tests.api.servers import is_closed
from tests.conftest import UNLIMITED, MakeInstallation

IDLE_SOCKETS = 1200


def under(limit: str) -> tuple[str, ...]:
    """What runs a command under a limit of the shell."""
    return ("sh", "-c", f'ulimit {limit} && exec "$@"', "sh")


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    """This process may hold as many sockets as it needs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < IDLE_SOCKETS + 200:
        pytest.skip(f"this process may open {hard} files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, IDLE_SOCKETS + 200), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def small(make_installation: MakeInstallation) -> Installation:
    """An installation that is not started yet."""
    small = make_installation(**UNLIMITED)
    small.root.mkdir()
    return small


def warnings(installation: Installation) -> list[str]:
    lines = map(json.loads, installation.files.log.read_text(encoding="utf-8").splitlines())
    return [line["message"] for line in lines if line["level"] not in ("debug", "info")]


@pytest.mark.parametrize("limit", ["-Sn 1024", "-n 256"])
def test_1200_idle_sockets_keep_no_client_waiting_and_fill_no_log(
    small: Installation, many_descriptors: None, limit: str
) -> None:
    # Who had to wait for a socket to be closed for its silence would wait for ever.
    small.environ["SVC_LIMIT_HEADER_SECONDS"] = "600"
    small.start(under(limit))
    address = ("127.0.0.1", int(small.base_url.rpartition(":")[2]))
    with ExitStack() as stack:
        client = stack.enter_context(small.client())
        client.put("/v1/buckets/inbox").raise_for_status()
        idle = [stack.enter_context(socket.create_connection(address)) for _ in range(IDLE_SOCKETS)]
        with small.client() as newcomer:
            newcomer.get("/v1/buckets").raise_for_status()
            newcomer.post("/v1/buckets/inbox/files", files={"file": ("a.md", b"The quay.")}).raise_for_status()
        assert is_closed(idle[0])
    (line,) = warnings(small)
    assert "connections are open" in line
    assert small.printed() == ""


def test_the_soft_limit_of_descriptors_is_raised(small: Installation) -> None:
    small.start(under("-Sn 200"))
    assert small.pid is not None
    soft, hard = resource.prlimit(small.pid, resource.RLIMIT_NOFILE)
    assert soft == min(hard, MOST_DESCRIPTORS)


def test_too_few_descriptors_are_refused_with_a_sentence(small: Installation) -> None:
    assert small.spawn_daemon(under("-n 64")).wait(30) == 1
    assert small.printed().count("\n") == 1
    assert "may open only 64 files" in small.printed()


def test_too_little_memory_is_refused_with_a_sentence_that_svc_repeats(small: Installation) -> None:
    assert small.spawn_daemon(under("-v 800000")).wait(30) == 1
    assert small.printed().count("\n") == 1
    command = [*under("-v 800000"), sys.executable, "-m", "svc_cli", "bucket", "ls"]
    ended = subprocess.run(
        command, env=small.environ, cwd=small.root, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 12
    assert "only 781 MB of address space" in ended.stderr


def test_a_soft_limit_of_memory_is_raised(small: Installation) -> None:
    small.start(under("-Sv 800000"))
    with small.client() as client:
        client.put("/v1/buckets/inbox").raise_for_status()
        source = client.post("/v1/buckets/inbox/files", files={"file": ("a.md", b"The quay.")}).json()
        wait_until(lambda: client.get(f"/v1/sources/{source['id']}").json()["ready"], "the source is ready")
