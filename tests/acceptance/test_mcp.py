"""MCP clients with real processes: over `svc mcp` on standard input and output, and over the daemon's `/mcp`."""

import asyncio
import json
import os
import random
import re
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from svc_daemon.wire.light.extras import install_command
from tests.acceptance.calls import list_sources, make_bucket, start_post, upload
from tests.acceptance.forks import ROOT
from tests.acceptance.installations import PATIENCE_S, Installation, environment, process_tree, wait_until
from tests.conftest import UNLIMITED, MakeInstallation
from tests.tools import data_of, refusal_of, see_the_whole_job

INITIALIZE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


@asynccontextmanager
async def stdio(installation: Installation, *words: str) -> AsyncIterator[Client]:
    """Start `svc mcp` and yield an MCP client of it."""
    args, cwd = ["-m", "svc_cli", "mcp", *words], str(installation.root)
    command = StdioServerParameters(command=sys.executable, args=args, env=installation.environ, cwd=cwd)
    with (installation.root / "mcp.err").open("w") as err:
        async with Client(stdio_client(command, errlog=err)) as client:
            yield client


def run(work: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(120):
            await work()

    asyncio.run(bounded())


@pytest.mark.rule("legacy.tools")
def test_mcp_client_over_stdio_uploads_files_and_survives_a_kill_of_the_daemon(
    make_installation: MakeInstallation,
) -> None:
    """The first call starts the daemon. If the daemon is killed during an upload, the upload continues with the next
    daemon, and the file is stored once."""
    installation = make_installation(**UNLIMITED)
    folder = installation.root / "documents"
    folder.mkdir(parents=True)
    data = random.Random(1).randbytes(8 * 1024 * 1024)
    (folder / "plan.txt").write_bytes(data)
    (installation.root / "secret.md").write_text("secret")
    file = {"bucket": "harbour", "path": "plan.txt", "title": "The plan"}
    # The test uses the arguments that the docs give for MCP hosts, with an existing folder.
    page = (ROOT / "docs" / "how-to" / "agents.md").read_text(encoding="utf-8")
    fences = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    (server,) = [json.loads(fence)["mcpServers"]["svc"] for fence in fences if '"command"' in fence]
    assert (server["command"], server["args"][:2]) == ("svc", ["mcp", "--allow"])

    async def work() -> None:
        async with stdio(installation, "--allow", str(folder)) as client:
            await see_the_whole_job(client)
            for path in ("../secret.md", str(installation.root / "secret.md")):
                error = refusal_of(await client.call_tool("svc-upload-file", {**file, "path": path}))
                assert (error["code"], error["retryable"]) == ("svc_path_not_allowed", False)
            sending = asyncio.ensure_future(client.call_tool("svc-upload-file", file))
            # On a busy machine, all bytes may have come before anybody looks.
            await asyncio.to_thread(
                wait_until, lambda: sending.done() or installation.part_sizes(), "the first bytes", every_s=0.001
            )
            os.kill(installation.pid or 0, 9)
            sent = data_of(await sending)
            again = data_of(await client.call_tool("svc-upload-file", file))
            assert (again["source_id"], again["replayed"]) == (sent["source_id"], True)

    run(work)
    assert "Traceback" not in (installation.root / "mcp.err").read_text()
    with installation.client() as client:
        plans = [source for source in list_sources(client, "harbour") if source["title"] == "The plan"]
    assert [source["sha256"] for source in plans] == [sha256(data).hexdigest()]


def test_mcp_prints_only_protocol_messages_to_stdout(shared_installation: Installation) -> None:
    """A warning about a setting without effect goes to stderr, and an invalid message is ignored."""
    with_another_limit = Installation(shared_installation.root, SVC_LIMIT_TAGS="7")
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        "this is no message",
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "svc-list-buckets"}},
    ]
    with with_another_limit.spawn_svc("mcp", stdin=subprocess.PIPE) as process:
        assert process.stdin and process.stdout
        process.stdin.write("".join(f"{json.dumps(message)}\n" for message in messages))
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(2)]
        out, err = process.communicate(timeout=PATIENCE_S)
    assert [answer["id"] for answer in answers] == [1, 2]
    assert "buckets" in answers[1]["result"]["structuredContent"]
    assert (out, process.returncode) == ("", 0)
    assert "SVC_LIMIT_TAGS=7 has no effect yet" in err


def test_waiting_tool_call_ends_when_its_client_leaves_or_the_daemon_stops(installation: Installation) -> None:
    for child in [child for pid in installation.pids for child in process_tree(pid)[1:]]:
        child.suspend()  # nothing is read, so nothing gets ready
    with installation.client() as client:
        make_bucket(client, "inbox")
        source_id = upload(client, "inbox", "notes.md", b"# Notes").json()["id"]
    call: dict[str, Any] = {"name": "svc-source-status", "arguments": {"sourceId": source_id, "waitSeconds": 50}}

    async def work() -> None:
        async with stdio(installation) as client:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    await client.call_tool(call["name"], call["arguments"])
            assert data_of(await client.call_tool("svc-list-buckets", {}))["buckets"][0]["total"] == 1

    def last_call() -> dict[str, Any] | None:
        """Return the last line of the access log for `/mcp`."""
        lines = [line.get("fields", {}) for line in installation.log_lines()]
        return next((line for line in reversed(lines) if line.get("route") == "/mcp"), None)

    run(work)

    waiting_for(installation, call).close()
    line = wait_until(last_call, "the end of the abandoned call")
    assert line["status"] is None

    with waiting_for(installation, call) as connection, connection.makefile("rb") as reader:
        assert installation.stop() == 0
        answer = reader.read()
    result = json.loads(answer.partition(b"\r\n\r\n")[2])["result"]
    assert json.loads(result["content"][0]["text"])["error"]["code"] == "shutting_down"


def waiting_for(installation: Installation, call: dict[str, Any]) -> socket.socket:
    """Return the connection of a tool call that the daemon is serving and has not responded to yet."""
    connection = start_post(installation, "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
    # Requests are accepted in order, so the call has begun when this later request gets its response.
    with installation.client() as client:
        assert client.get("/v1/version").is_success
    return connection


def test_svc_mcp_names_the_extra_if_the_mcp_library_is_missing(tmp_path: Path) -> None:
    environ = environment(tmp_path, {})
    (tmp_path / "mcp.py").write_text("raise ModuleNotFoundError('mcp is not installed', name='mcp')")
    environ["PYTHONPATH"] = f"{tmp_path}{os.pathsep}{environ['PYTHONPATH']}"
    command = [sys.executable, "-m", "svc_cli", "mcp"]
    ended = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False, input="")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert install_command("mcp") in ended.stderr
