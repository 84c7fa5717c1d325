"""All three engines over TLS with certificates of private authorities, which SSL_CERT_FILE names."""

import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import trustme

from tests.acceptance.installations import wait_until
from tests.cluster.milvus import RunningMilvus
from tests.cluster.object_store import BUCKET, ObjectStore
from tests.cluster.postgres import HOST, running_postgres, system_programs
from tests.cluster.tls import tls_before
from tests.conftest import UNLIMITED, MakeInstallation

TEXT = "# Quay\n\nThe umber quay was built of grey stone.\n"


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
