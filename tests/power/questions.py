"""Asks a daemon on a replayed disk for all that was promised."""

import hashlib
import os
from collections import Counter
from pathlib import Path

import httpx

from svc_daemon.offline.verify import verify_directory
from tests.acceptance.calls import get_source, list_sources, wait_ended
from tests.acceptance.installations import Installation, wait_until
from tests.power.diaries import Promised

#: How many documents one search looks for.
WORDS_AT_ONCE = 8
#: What has to go on by itself after the start has to end within this time.
SETTLE_S = 20.0


def assert_kept(installation: Installation, promised: Promised) -> None:
    """Start the daemon and assert that nothing is lost, doubled or stuck; then verify its directory."""
    root = installation.files.root
    installation.start()
    try:
        with installation.client() as client:
            client.timeout = httpx.Timeout(SETTLE_S)
            _assert_sources(client, promised)
            _assert_searches(client, promised)
            for assert_fact in promised.facts.values():
                assert_fact(client)
            for again in promised.unanswered:
                again(client)
            _assert_single(client)
        wait_until(lambda: not _list_files(root) & promised.gone.keys(), f"no bytes of {promised.gone}", SETTLE_S)
    finally:
        installation.clear()
    # What `svc-daemon verify --read-data` does, without the start of a process.
    verdict = verify_directory(root, read_data=True, repair=False)
    assert verdict.is_whole, "\n".join(verdict.lines())


def _list_files(root: Path) -> set[str]:
    """Return the names of all files; those of blobs are their sources' ids."""
    return {name for _, _, names in os.walk(root) for name in names}


def _assert_sources(client: httpx.Client, promised: Promised) -> None:
    for source_id, document in promised.sources.items():
        if source_id in promised.unsure:
            continue
        answer = client.get(f"/v1/sources/{source_id}")
        assert answer.status_code == 200, f"lost: {document}: {answer.text}"
        if source_id in promised.ready:
            shown = answer.json()
            # A backup has no list of words, which is rebuilt after a restore.
            is_restored = any(what.startswith("restore") for what in promised.log)
            is_ready = shown["ready"] or (is_restored and shown["ready_withheld_by"] == "team_store_maintenance")
            assert is_ready, f"no longer ready: {answer.text}"
        content = client.get(f"/v1/sources/{source_id}/content").content
        assert content == document.data, f"{document} has other bytes: {hashlib.sha256(content).hexdigest()}"
        assert document.send(client) == source_id, f"doubled by a replay: {document}"
        assert wait_ended(client, source_id, SETTLE_S)["ready"], document
    for source_id, document in promised.gone.items():
        assert client.get(f"/v1/sources/{source_id}").status_code == 404, f"back again: {document}"


def _assert_searches(client: httpx.Client, promised: Promised) -> None:
    documents = list({**promised.sources, **promised.gone}.items())
    for start in range(0, len(documents), WORDS_AT_ONCE):
        some = dict(documents[start : start + WORDS_AT_ONCE])
        words = {"query": " ".join(each.name for each in some.values()), "max_num_results": 50}
        answer = client.post("/v1/search", json=words)
        # Before the first document, there is no index.
        is_empty = answer.status_code == 409 and answer.json()["error"]["code"] == "bucket_store_indexing_pending"
        found = set() if is_empty else {hit["source_id"] for hit in answer.raise_for_status().json()["data"]}
        wanted = some.keys() & promised.sources.keys()
        sure = some.keys() - promised.unsure
        assert found & sure == wanted & sure, f"searches find {found & sure}, not {wanted & sure}"


def _assert_single(client: httpx.Client) -> None:
    """Assert that all work ends well by itself, and that no bucket has a file twice."""
    for bucket in client.get("/v1/buckets").raise_for_status().json()["buckets"]:
        sources = list_sources(client, bucket["slug"])
        for source in sources:
            # A source whose stored bytes are lost ends as failed, and `verify` takes that loss for known.
            ended = source if source["ready"] else wait_ended(client, source["id"], SETTLE_S)
            assert ended["ready"], f"not ready: {ended}"
        names = Counter(get_source(client, source["id"])["filename"] for source in list_sources(client, bucket["slug"]))
        assert not [name for name, count in names.items() if name and count > 1], f"doubled: {names}"
