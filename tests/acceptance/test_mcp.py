"""Agents at both doors, with real processes: `svc mcp` on standard input and output, and the daemon's `/mcp`."""

import asyncio
import hashlib
import json
import os
import random
import re
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.acceptance.calls import make_bucket, upload
from tests.acceptance.installations import ROOT, Installation, environment, process_tree, wait_until
from tests.conftest import UNLIMITED, MakeInstallation
from tests.samples import make_pdf
from tests.tools import PAGES, encoded, http_client, refusal_of, see_the_whole_job, told

INITIALIZE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


@asynccontextmanager
async def stdio(installation: Installation, *words: str) -> AsyncIterator[Client]:
    """A client that has started `svc mcp`."""
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "svc_cli", "mcp", *words],
        env=installation.environ,
        cwd=str(installation.root),
    )
    with (installation.root / "mcp.err").open("w") as err:
        async with Client(stdio_client(command, errlog=err)) as client:
            yield client


def run(work: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(120):
            await work()

    asyncio.run(bounded())


def test_an_agent_over_http_uploads_waits_searches_and_cites(installation: Installation) -> None:
    async def work() -> None:
        async with http_client(installation.base_url, installation.key) as client:
            await see_the_whole_job(client)

    run(work)


def test_an_agent_over_stdio_needs_no_daemon_and_names_files(make_installation: MakeInstallation) -> None:
    """The first call starts the daemon; when that is killed, the next call starts it again, and nothing is twice."""
    installation = make_installation()
    folder = installation.root / "documents"
    folder.mkdir(parents=True)
    (folder / "plan.pdf").write_bytes(make_pdf(PAGES))
    (installation.root / "secret.md").write_text("secret")
    file = {"bucket": "harbour", "path": "plan.pdf", "title": "The plan"}

    async def work() -> None:
        async with stdio(installation, *words_of_the_docs(folder)) as client:
            await see_the_whole_job(client)
            first = told(await client.call_tool("svc-upload-file", file))
            assert (first["title"], first["replayed"]) == ("The plan", False)
            for path in ("../secret.md", str(installation.root / "secret.md")):
                error = refusal_of(await client.call_tool("svc-upload-file", {**file, "path": path}))
                assert (error["code"], error["retryable"]) == ("svc_path_not_allowed", False)
            os.kill(installation.pid or 0, 9)
            again = told(await client.call_tool("svc-upload-file", file))
            assert (again["source_id"], again["replayed"]) == (first["source_id"], True)
            error = refusal_of(await client.call_tool("svc-search", {"query": "x", "buckets": ["nowhere"]}))
            assert (error["code"], error["request_id"][:4]) == ("bucket_not_found", "req_")

    run(work)
    assert "Traceback" not in (installation.root / "mcp.err").read_text()


def words_of_the_docs(folder: Path) -> list[str]:
    """The arguments that the page on MCP gives to hosts, with a folder that is here."""
    page = (ROOT / "docs" / "mcp.md").read_text(encoding="utf-8")
    (hosts,) = [
        json.loads(fence) for fence in re.findall(r"```json\n(.*?)```", page, re.DOTALL) if '"command"' in fence
    ]
    server = hosts["mcpServers"]["svc"]
    assert (server["command"], server["args"][:2]) == ("svc", ["mcp", "--allow"])
    return ["--allow", str(folder)]


def test_two_agents_at_once_store_a_file_once(installation: Installation) -> None:
    files = [{"filename": f"{n}.md", "contentBase64": encoded(f"file {n}".encode())} for n in range(10)]

    async def send(client: Client) -> list[str]:
        call = {"bucketSlugs": ["inbox"], "createMissingBuckets": True}
        results = [await client.call_tool("svc-upload-file", file | call) for file in files]
        return [told(result)["source_id"] for result in results]

    async def work() -> None:
        async with (
            http_client(installation.base_url, installation.key) as first,
            http_client(installation.base_url, installation.key, "legacy") as second,
        ):
            one, other = await asyncio.gather(send(first), send(second))
            assert one == other

    run(work)
    with installation.client() as client:
        members = client.get("/v1/buckets/inbox/sources", params={"status": "all"}).json()["sources"]
    assert len(members) == len(files)


def test_a_wait_ends_with_its_client_and_with_the_service(installation: Installation) -> None:
    for child in process_tree(installation.pid or 0)[1:]:
        child.suspend()  # nothing is read, so nothing gets ready
    with installation.client() as client:
        make_bucket(client, "inbox")
        source_id = upload(client, "inbox", "notes.md", b"# Notes").json()["id"]

    waiting_for(installation, source_id).close()
    line = wait_until(lambda: call_in_log(installation), "the end of a call that nobody waits for", 10)
    assert line["status"] is None

    with waiting_for(installation, source_id) as connection, connection.makefile("rb") as reader:
        assert installation.stop() == 0
        answer = reader.read()
    result = json.loads(answer.partition(b"\r\n\r\n")[2])["result"]
    assert json.loads(result["content"][0]["text"])["error"]["code"] == "shutting_down"


def waiting_for(installation: Installation, source_id: str) -> socket.socket:
    """A connection on which an agent waits for a source; its call is being served."""
    params = {"name": "svc-source-status", "arguments": {"sourceId": source_id, "waitSeconds": 50}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    head = f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {installation.key}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    address = urlsplit(installation.base_url)
    connection = socket.create_connection((address.hostname, address.port), timeout=30)
    connection.sendall(head.encode() + body)
    # Served in the order in which they come, so the call before is under way when this one is answered.
    with installation.client() as client:
        assert client.get("/v1/version").is_success
    return connection


def call_in_log(installation: Installation) -> dict[str, Any] | None:
    """The last line of the access log about a tool."""
    lines = [json.loads(line) for line in installation.files.log.read_text().splitlines()]
    calls = [line["fields"] for line in lines if line.get("fields", {}).get("route") == "/mcp"]
    return dict(calls[-1]) if calls else None


def test_an_upload_goes_on_after_a_kill_in_the_middle(make_installation: MakeInstallation) -> None:
    """A large file is on its way: the client goes on with the next daemon, and the file is there once."""
    installation = make_installation(**UNLIMITED)
    installation.start()
    data = random.Random(1).randbytes(8 * 1024 * 1024)
    file = {"bucketSlugs": ["inbox"], "createMissingBuckets": True, "filename": "a.txt", "contentBase64": encoded(data)}

    async def work() -> None:
        async with stdio(installation) as client:
            sending = asyncio.ensure_future(client.call_tool("svc-upload-file", file))
            await asyncio.to_thread(wait_until, lambda: any(installation.files.parts.iterdir()), "the first bytes")
            installation.kill()
            source = told(await sending)
            assert (source["size_bytes"], source["filename"]) == (len(data), "a.txt")

    run(work)
    with installation.client() as client:
        (source,) = client.get("/v1/buckets/inbox/sources", params={"status": "all"}).json()["sources"]
    assert (source["size_bytes"], source["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())


def test_standard_output_carries_the_protocol_alone(make_installation: MakeInstallation) -> None:
    """Whatever else there is to say: a daemon that is started, settings that are not in force, a broken message."""
    installation = make_installation()
    installation.root.mkdir(parents=True)
    with installation.spawn_svc("mcp", stdin=subprocess.PIPE) as process:
        assert process.stdin and process.stdout and process.stderr
        messages = [
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            "this is no message",
            {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "svc-list-buckets"}},
        ]
        process.stdin.write("".join(f"{json.dumps(message)}\n" for message in messages))
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(2)]
        out, err = process.communicate(timeout=30)
    assert [answer["id"] for answer in answers] == [1, 2]
    assert answers[1]["result"]["structuredContent"]["buckets"] == []
    assert (out, process.returncode) == ("", 0)
    assert "starting the daemon" in err


def test_a_call_that_is_given_up_keeps_nobody_else_waiting(installation: Installation) -> None:
    for child in process_tree(installation.pid or 0)[1:]:
        child.suspend()

    async def work() -> None:
        async with stdio(installation) as client:
            file = {"bucketSlugs": ["inbox"], "createMissingBuckets": True, "filename": "a.md", "contentBase64": "eA=="}
            source_id = told(await client.call_tool("svc-upload-file", file))["source_id"]
            wait = {"sourceId": source_id, "waitSeconds": 50}
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    await client.call_tool("svc-source-status", wait)
            assert told(await client.call_tool("svc-list-buckets", {}))["buckets"][0]["total"] == 1

    run(work)


def test_the_daemon_and_its_commands_load_no_library_of_mcp(tmp_path: Path) -> None:
    script = (
        "import sys, svc_daemon.server, svc_cli.app; svc_cli.app.run(['--help']); print(*sys.modules, file=sys.stderr)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], env=environment(tmp_path, {}), capture_output=True, text=True, check=True
    )
    assert not {"mcp", "mcp_types", "svc_daemon.wire.tools.catalogue"} & set(ended.stderr.split())


def test_without_the_library_svc_mcp_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "mcp.py").write_text("raise ModuleNotFoundError('mcp is not installed', name='mcp')")
    environ = environment(tmp_path, {})
    environ["PYTHONPATH"] = f"{tmp_path}{os.pathsep}{environ['PYTHONPATH']}"
    command = [sys.executable, "-m", "svc_cli", "mcp"]
    ended = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False, input="")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "pip install 'svc[mcp]'" in ended.stderr
