"""Semantic search of a real daemon: models are installed and removed, and keys stay secret."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.acceptance.calls import search, take_in
from tests.acceptance.installations import Finished, Installation, wait_until
from tests.acceptance.vectors import counts, wait_embedded
from tests.conftest import UNLIMITED, MakeInstallation
from tests.embed.models import REAL_MODEL, needs_real_model, write_model
from tests.embed.vector_servers import vector_server

BUCKET = "shelf"
NOTES = "# Shelf\n\nThe umber binder stands beside number {number}.\n"
PARTS = 80
#: More chunks than one embedding batch.
MANY = "".join(f"# Part {number}\n\nThe umber quay {number} was built of grey stone.\n\n" for number in range(PARTS))


def install(installation: Installation, target: object) -> Finished:
    installation.root.mkdir(parents=True, exist_ok=True)
    return installation.operate("model", "install", str(target), "--json")


def embedding(installation: Installation) -> dict[str, Any]:
    return dict((installation.health() or {}).get("embedding") or {})


def wait_ready(installation: Installation) -> dict[str, Any]:
    """Wait until the embedding model is ready, and return what the service reports about it."""
    wait_until(lambda: embedding(installation)["state"] == "ready", "the model is in use")
    return embedding(installation)


def search_by_meaning(client: httpx.Client, query: str) -> dict[str, Any]:
    body = {"query": query, "buckets": [BUCKET], "mode": "semantic"}
    return dict(client.post("/v1/search", json=body).raise_for_status().json())


def embedded_text(name: str, number: int) -> str:
    """Return the exact text that is embedded for a note, to which even a random model finds nothing closer."""
    return f"{name} Shelf The umber binder stands beside number {number}."


@pytest.mark.one_daemon  # each machine has a model of its own
def test_running_daemon_starts_and_stops_using_a_model_that_is_installed_and_removed(
    make_installation: MakeInstallation, tmp_path: Path
) -> None:
    installation = make_installation(**UNLIMITED).start()
    with installation.client() as client:
        notes = take_in(client, BUCKET, "notes.md", MANY.encode())
        assert embedding(installation)["state"] == "off"
        assert "no embedding model" in search_by_meaning(client, "quay")["warnings"][0]

        installed = install(installation, write_model(tmp_path / "tiny"))
        assert (installed.exit, installed.json["installed"]) == (0, True)
        assert "the running service uses it" in installed.stderr
        assert wait_ready(installation)["model"] == installed.json["model"]
        other = take_in(client, BUCKET, "other.md", NOTES.format(number=1).encode())
        assert wait_embedded(installation) > PARTS
        page = search_by_meaning(client, embedded_text("other.md", 1))
        assert (page["data"][0]["source_id"], page["warnings"]) == (other, [])
        for words in (("daemon", "status"), ("doctor",)):
            assert f"ready, {installed.json['model']}" in installation.svc(*words).stdout

        client.delete(f"/v1/sources/{notes}").raise_for_status()
        wait_until(lambda: counts(installation) == (1, 1), "the chunks of the deleted source are removed")

        assert installation.operate("model", "remove").exit == 0
        wait_until(lambda: embedding(installation)["state"] == "off", "the model is no longer used")
        assert search(client, "binder", BUCKET)[0]["source_id"] == other
    installation.assert_intact()


def test_embedding_server_makes_the_vectors_and_its_key_is_written_to_no_file(
    make_installation: MakeInstallation, tmp_path: Path
) -> None:
    key = "sk-embedding-0123456789"
    (tmp_path / "key").write_text(f"{key}\n")
    with vector_server() as server:
        variables = {"SVC_EMBED_BASE_URL": server.base_url, "SVC_EMBED_MODEL": "any", "SVC_LOG_LEVEL": "debug"}
        installation = make_installation(**UNLIMITED, **variables, SVC_EMBED_API_KEY_FILE=str(tmp_path / "key")).start()
        with installation.client() as client:
            source_id = take_in(client, BUCKET, "notes.md", NOTES.format(number=3).encode())
            wait_ready(installation)
            assert (wait_embedded(installation), search_by_meaning(client, "anything")["data"][0]["source_id"]) == (
                1,
                source_id,
            )
        assert {asked.headers["authorization"] for asked in server.asked} == {f"Bearer {key}"}
    installation.assert_intact()
    files = [path for path in installation.root.rglob("*") if path.is_file()]
    assert [path for path in files if key.encode() in path.read_bytes()] == []


SHELF = {
    "contracts.md": "# Contracts\n\nEither party may end the agreement with three months' notice in writing.\n",
    "kitchen.md": "# Kitchen\n\nThe oven is cleaned on Fridays; leftovers go into the fridge.\n",
    "travel.md": "# Travel\n\nTrain tickets are refunded when receipts are handed in within thirty days.\n",
}
MEANT = {
    "How do I cancel my contract early?": "contracts.md",
    "where to put food that nobody has eaten": "kitchen.md",
    "get money back for a railway journey": "travel.md",
}


@pytest.mark.one_daemon
@needs_real_model
def test_real_model_finds_documents_by_meaning(make_installation: MakeInstallation) -> None:
    installation = make_installation(**UNLIMITED)
    assert install(installation, REAL_MODEL).exit == 0
    with installation.start().client() as client:
        for name, text in SHELF.items():
            take_in(client, BUCKET, name, text.encode())
        wait_embedded(installation)
        assert {query: search_by_meaning(client, query)["data"][0]["filename"] for query in MEANT} == MEANT
