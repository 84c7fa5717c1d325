"""Deleting a full bucket: out of reach at once, and gone whatever is killed. How long it takes, a benchmark tells."""

from tests.acceptance.calls import list_sources
from tests.acceptance.cascades import ENDED_S, delete, fill, found, wait_task
from tests.acceptance.installations import Installation, wait_until

#: Members, and of these the ones that another bucket has too.
MEMBERS, SHARED = 200, 20
LARGE_MEMBERS, LARGE_SHARED = 1000, 100


def test_a_full_bucket_is_out_of_reach_at_once_and_gone_soon(installation: Installation, large: bool) -> None:
    members, shared = (LARGE_MEMBERS, LARGE_SHARED) if large else (MEMBERS, SHARED)
    with installation.client() as client:
        ids = fill(client, members, shared)
        assert found(client) - set(ids[:shared])
        deletion = delete(client)

        def is_over() -> bool:
            """Also searches: from the first answer on, while the cascade goes on behind it."""
            assert set() < found(client) <= set(ids[:shared])
            return bool(client.get(f"/v1/knowledge/tasks/{deletion['task_id']}").json()["finished_at"])

        wait_until(is_over, "the end of the cascade", ENDED_S)
        task = wait_task(client, deletion["task_id"])
        assert task["deletion"] == deletion | {"deleted": members - shared, "detached": shared}
        assert client.get("/v1/buckets/doomed").status_code == 404
        assert sorted(source["id"] for source in list_sources(client, "kept")) == sorted(ids[:shared])
        wait_until(lambda: len(list(installation.files.blobs.iterdir())) == shared, "the bytes are gone", 60)
    installation.hold_to_every_promise()


def test_a_cascade_goes_on_after_kills(installation: Installation) -> None:
    with installation.client() as client:
        ids = fill(client, MEMBERS, SHARED)
        deletion = delete(client)
    for _ in range(5):
        installation.kill()
        installation.start()
    with installation.client() as client:
        task = wait_task(client, deletion["task_id"])
        assert (task["status"], task["deletion"]["detached"]) == ("succeeded", SHARED)
        assert found(client) <= set(ids[:SHARED])
        wait_until(lambda: len(list(installation.files.blobs.iterdir())) == SHARED, "the bytes are gone", 60)
    installation.hold_to_every_promise()
