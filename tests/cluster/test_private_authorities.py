"""All three engines over TLS with certificates of private authorities, which SSL_CERT_FILE names."""

import asyncio
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx
import trustme

from tests.acceptance.installations import wait_until
from tests.cluster.milvus import RunningMilvus
from tests.cluster.object_store import BUCKET, ObjectStore
from tests.cluster.postgres import HOST, running_postgres, system_programs
from tests.conftest import UNLIMITED, MakeInstallation

TEXT = "# Quay\n\nThe umber quay was built of grey stone.\n"


@contextmanager
def tls_before(port: int, context: ssl.SSLContext) -> Iterator[int]:
    """Yield a port that accepts TLS and forwards to this port without TLS."""
    opened: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, int]] = Future()
    thread = threading.Thread(target=lambda: asyncio.run(_serve(port, context, opened)), daemon=True)
    thread.start()
    loop, ended, own_port = opened.result()
    try:
        yield own_port
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()


async def _serve(
    port: int, context: ssl.SSLContext, opened: "Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, int]]"
) -> None:
    ended = asyncio.Event()
    writers: list[asyncio.StreamWriter] = []

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        engine_reader, engine_writer = await asyncio.open_connection("127.0.0.1", port)
        writers.extend((writer, engine_writer))
        await asyncio.gather(pass_on(reader, engine_writer), pass_on(engine_reader, writer))

    server = await asyncio.start_server(take, "127.0.0.1", 0, ssl=context)
    opened.set_result((asyncio.get_running_loop(), ended, server.sockets[0].getsockname()[1]))
    await ended.wait()
    server.close()
    for writer in writers:
        writer.transport.abort()
        with suppress(OSError):
            await writer.wait_closed()


@contextmanager
def behind_tls(store: ObjectStore, milvus: RunningMilvus, authorities: Path) -> Iterator[dict[str, str]]:
    """Put TLS in front of the engines, write their authorities to a file, and yield the variables of a daemon."""
    ours = trustme.CA()
    with ExitStack() as stack:
        ports = {}
        for port, protocol in ((store.port, "http/1.1"), (milvus.port, "h2")):
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.set_alpn_protocols([protocol])
            ours.issue_cert(HOST).configure_cert(context)
            ports[protocol] = stack.enter_context(tls_before(port, context))
        # The package's PostgreSQL has no TLS.
        postgres = stack.enter_context(running_postgres(next(iter(system_programs()), None)))
        state_url = postgres.make_database()
        if postgres.is_systems:
            state_url = f"{state_url.replace('127.0.0.1', HOST)}?sslmode=verify-full&hostaddr=127.0.0.1"
        authorities.write_bytes(ours.cert_pem.bytes() + postgres.authority.read_bytes())
        yield {
            "SVC_STATE_URL": state_url,
            "SVC_BLOBS_URL": f"s3://{BUCKET}/private",
            "SVC_INDEX_URL": f"https://{HOST}:{ports['h2']}",
            **store.environ,
            "AWS_ENDPOINT_URL": f"https://{HOST}:{ports['http/1.1']}",
            "SSL_CERT_FILE": str(authorities),
        }


def test_engines_are_trusted_only_with_an_authority_in_ssl_cert_file(
    store: ObjectStore, milvus: RunningMilvus, make_installation: MakeInstallation, tmp_path: Path
) -> None:
    authorities = tmp_path / "authorities.pem"

    def upload(client: httpx.Client) -> httpx.Response:
        client.put("/v1/buckets/inbox").raise_for_status()
        return client.post("/v1/buckets/inbox/files", files={"file": ("quay.md", TEXT.encode())})

    with behind_tls(store, milvus, authorities) as environ:
        node = make_installation("node", **{**UNLIMITED, **environ})
        node.root.mkdir(parents=True)
        node.start()
        with node.client() as client:
            source_id = upload(client).raise_for_status().json()["id"]
            wait_until(lambda: client.get(f"/v1/sources/{source_id}").json()["ready"], "the source is ready")
            answer = client.post("/v1/search", json={"query": "umber quay", "buckets": ["inbox"]})
            assert [found["source_id"] for found in answer.json()["data"]] == [source_id]
        assert node.stop() == 0
        certificates = authorities.read_text().split("-----BEGIN")
        # Only PostgreSQL's authority is left, so the other engines' certificates are no longer trusted.
        authorities.write_text(f"-----BEGIN{certificates[2]}")
        node.start()
        with node.client() as client:
            search = {"query": "umber quay", "buckets": ["inbox"]}
            answers = (
                upload(client),
                client.get(f"/v1/sources/{source_id}/content"),
                client.post("/v1/search", json=search),
            )
            assert [answer.status_code for answer in answers] == [503, 503, 502]
        assert node.stop() == 0
        authorities.write_text(f"-----BEGIN{certificates[1]}")
        if "sslmode" in environ["SVC_STATE_URL"]:
            ended = node.operate("serve")
            assert (ended.exit, "certificate" in ended.stderr, "Traceback" in ended.stderr) == (1, True, False)
