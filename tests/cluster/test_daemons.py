"""Real daemons on the three real engines keep no data in their data directories and show no secrets."""

import re
from contextlib import closing

import psutil
from pymilvus import MilvusClient

from svc_daemon.exits import EXIT_USAGE
from tests.acceptance import calls
from tests.acceptance.calls import make_bucket, take_in
from tests.acceptance.forks import ROOT
from tests.acceptance.installations import Installation, wait_until
from tests.cluster.milvus import RunningMilvus
from tests.cluster.nodes import MakeNode
from tests.cluster.object_store import SECRET_KEY
from tests.cluster.postgres import PASSWORD

QUAY = b"# Quay\n\nThe umber quay was built of grey stone.\n"


def with_a_source(node: Installation) -> str:
    """Upload a source about the umber quay into `inbox`, wait until it is ready, and return its id."""
    with node.client() as client:
        return take_in(client, "inbox", "quay.md", QUAY)


def upload(node: Installation, text: str) -> str:
    """Upload a source into the bucket `inbox` and return its id."""
    with node.client() as client:
        make_bucket(client, "inbox")
        return str(calls.upload(client, "inbox", "a.md", text.encode()).raise_for_status().json()["id"])


def is_ready(node: Installation, source_id: str) -> bool:
    with node.client() as client:
        return bool(client.get(f"/v1/sources/{source_id}").json()["ready"])


def found(node: Installation, query: str) -> list[str]:
    with node.client() as client:
        answer = client.post("/v1/search", json={"query": query, "buckets": ["inbox"]})
        return [result["source_id"] for result in answer.json().get("data", [])]


def test_daemon_keeps_no_data_in_its_data_directory_and_continues_after_a_kill(make_node: MakeNode) -> None:
    node = make_node().start()
    source_id = with_a_source(node)
    assert found(node, "umber quay") == [source_id]
    folders = (node.files.blobs, node.files.parts, node.files.index)
    kept = [path for folder in folders for path in folder.glob("**/*") if path.is_file()]
    assert (kept, node.files.state.exists()) == ([], False)
    node.crash()
    assert found(node, "umber quay") == [source_id]
    with node.client() as client:
        assert client.get(f"/v1/sources/{source_id}/content").content == QUAY
        assert client.delete(f"/v1/sources/{source_id}").status_code == 200
    assert found(node, "umber quay") == []
    assert node.stop() == 0


def test_node_starts_and_accepts_uploads_while_the_index_hangs_or_is_lost(
    make_node: MakeNode, milvus: RunningMilvus
) -> None:
    node, other = make_node().start(), make_node("two")
    first = with_a_source(node)
    node.kill()
    milvus.engine.suspend()
    try:
        node.start()
        second = upload(node, "# Bridge\n\nThe ochre bridge.\n")
    finally:
        milvus.engine.resume()
    wait_until(lambda: is_ready(node, second), "the second source is ready", 120)
    node.kill()
    with closing(MilvusClient(milvus.url)) as client:
        for name in client.list_collections():
            if not name.startswith("svc_mark_"):
                client.drop_collection(name)
    for each in (node, other):
        each.start()
    wait_until(lambda: found(node, "umber quay") == [first], "the first source is found again", 120)
    wait_until(lambda: found(node, "ochre bridge") == [second], "the second source is found again", 120)


def test_passwords_and_tokens_are_in_no_response_output_or_log(make_node: MakeNode) -> None:
    token = "root:a-token-of-milvus"
    node = make_node(SVC_LOG_LEVEL="debug", SVC_INDEX_TOKEN=token).start()
    with_a_source(node)
    assert node.operate("team", "create", "second", "--json").exit == 0
    with node.client() as client:
        shown = [client.get(path).text for path in ("/healthz", "/v1/limits", "/v1/version")]
    shown += [" ".join(psutil.Process(node.pid).cmdline()), node.printed()]
    shown += [path.read_text(errors="replace") for path in (node.files.log, node.files.daemon)]
    shown += [node.svc(*words, "--json").stdout for words in (("daemon", "status"), ("doctor",), ("config", "list"))]
    secrets = (PASSWORD, node.environ["SVC_STATE_URL"].split("@")[0].split(":")[-1], SECRET_KEY, token)
    assert [secret for secret in secrets for text in shown if secret in text] == []


def test_operator_commands_work_on_the_cluster_with_and_without_a_daemon(make_node: MakeNode) -> None:
    page = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
    commands = sorted(set(re.findall(r"`svc-daemon ((?:team|key) [a-z]+[^`]*)`", page)))
    assert [command.split()[:2] for command in commands] == [["key", "create"]]
    node = make_node()
    assert node.operate("serve", "--role", "nobody").exit == EXIT_USAGE

    def operate(*commands: str) -> None:
        for command in commands:
            ended = node.operate(*command.split(), "--json")
            assert ended.exit == 0, (command, ended)

    # The first command creates the installation.
    operate("team create first", *commands)
    node.start()
    operate("team create second", *commands)
    assert node.stop() == 0
    # Like another machine, which only has the addresses of the engines.
    listed = make_node("two").operate("team", "ls", "--json")
    assert [team["name"] for team in listed.json["teams"]] == ["default", "first", "second"]
    # `backup` is refused, because the data directory has no data; `verify` checks the engines.
    assert node.operate("backup", "folder", "--json").failure == (2, "svc_usage")
    assert node.verify("--json").json["whole"]


def test_worker_node_indexes_what_an_api_node_accepts(make_node: MakeNode) -> None:
    api, worker = make_node("api"), make_node("worker")
    api.options, worker.options = ("--role", "api"), ("--role", "worker")
    api.start()
    source_id = upload(api, "The umber quay.")
    # No worker is running yet.
    health = api.health()
    assert health is not None
    assert (health["queue"], is_ready(api, source_id)) == ({"queued": 1, "running": 0}, False)
    worker.start()
    wait_until(lambda: is_ready(api, source_id), "the worker has made the source ready")
    assert found(api, "umber quay") == [source_id]
    # The other node wakes the worker before it polls the queue.
    second = upload(api, "# Bridge\n\nThe ochre bridge.\n")
    wait_until(lambda: is_ready(api, second), "the second source is ready")
    worker.kill()
    third = upload(api, "# Tower\n\nThe teal tower.\n")
    assert not is_ready(api, third)
    worker.start()
    wait_until(lambda: is_ready(api, third), "the third source is ready")
    assert [api.stop(), worker.stop()] == [0, 0]


def test_nodes_share_the_admin_key_and_the_secret(make_node: MakeNode) -> None:
    first, second = make_node("first").start(), make_node("second").start()
    assert not second.files.admin_key.exists()
    with first.client() as client:
        secret = client.get("/v1/webhooks/secret").json()["secret"]
        there = client.get(f"{second.base_url}/v1/webhooks/secret")
        assert (there.status_code, there.json()["secret"]) == (200, secret)
        client.put("/v1/buckets/inbox").raise_for_status()
        fields = {"filename": "a.txt", "size_bytes": 6}
        session = client.post("/v1/buckets/inbox/uploads", json=fields).json()
        url = session["upload_url"].removeprefix(first.base_url)
        for base_url, span in ((first.base_url, "bytes 0-2/6"), (second.base_url, "bytes 3-5/6")):
            answer = client.put(base_url + url, content=b"abc", headers={"Content-Range": span})
        assert (answer.status_code, answer.json()["received_bytes"]) == (200, 6)
    assert [first.stop(), second.stop()] == [0, 0]


def test_data_directory_with_its_own_installation_cannot_join_a_cluster(make_node: MakeNode) -> None:
    node = make_node()
    variables = ("SVC_STATE_URL", "SVC_BLOBS_URL", "SVC_INDEX_URL")
    cluster = {name: node.environ.pop(name) for name in variables}
    assert node.start().stop() == 0
    node.environ |= cluster
    ended = node.operate("serve")
    assert (ended.exit, "has an installation of its own" in ended.stderr) == (1, True)


def test_start_with_an_unreachable_database_fails_with_a_sentence(make_node: MakeNode) -> None:
    ended = make_node(SVC_STATE_URL="postgresql://svc:hidden@127.0.0.1:1/svc").operate("serve")
    assert (ended.exit, "can't be reached" in ended.stderr, "hidden" in ended.stderr) == (1, True, False)
    assert "Traceback" not in ended.stderr


def test_restore_of_a_cluster_raises_the_revision_of_the_bucket(make_node: MakeNode) -> None:
    node = make_node().start()
    with_a_source(node)

    def revision() -> int:
        with node.client() as client:
            return int(client.get("/v1/buckets/inbox").json()["revision"])

    first = revision()
    marked = node.operate("restore", "--json")
    assert (marked.exit, marked.json["type"]) == (0, "restore.summary")
    second = revision()
    assert first < marked.json["revision"] <= second
    assert node.stop() == 0
    assert node.operate("restore", "--json").exit == 0, "restore fails without a daemon"
    node.start()
    assert revision() >= second
