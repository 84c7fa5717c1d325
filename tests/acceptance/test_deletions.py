"""A deleted bucket's sources are unreachable at once, and their data is deleted even if the daemon is killed."""

import pytest

from tests.acceptance.calls import list_sources, wait_task
from tests.acceptance.cascades import delete, fill, found
from tests.acceptance.installations import Installation, wait_until

#: How many sources the bucket has, and how many of them are in another bucket too.
MEMBERS, SHARED = 120, 12
LARGE_MEMBERS, LARGE_SHARED = 1000, 100


@pytest.mark.rule("deletion.gone", "buckets.shared")
def test_deleted_bucket_is_unreachable_at_once_and_its_deletion_survives_kills(
    installation: Installation, large: bool
) -> None:
    members, shared = (LARGE_MEMBERS, LARGE_SHARED) if large else (MEMBERS, SHARED)
    with installation.client() as client:
        kept = set(fill(client, members, shared)[:shared])
        assert found(client) - kept
        deletion = delete(client)
        # From the response on, while the deletion is still running.
        assert set() < found(client) <= kept
    for _ in range(5):
        installation.crash()
        with installation.client() as client:
            assert set() < found(client) <= kept
    with installation.client() as client:
        task = wait_task(client, deletion["task_id"])
        assert (task["status"], task["deletion"]["detached"]) == ("succeeded", shared)
        assert client.get("/v1/buckets/doomed").status_code == 404
        assert {source["id"] for source in list_sources(client, "kept")} == kept
        wait_until(lambda: len(installation.blob_sizes()) == shared, "the bytes are deleted")
    installation.assert_intact()
