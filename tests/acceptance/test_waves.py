"""Small documents that are indexed in waves survive kills of a real daemon, and none fails because of them."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.acceptance.calls import get_source, list_sources, make_bucket, search, upload, wait_ended
from tests.acceptance.installations import Installation, wait_until
from tests.processes import reading_nothing

BUCKET = "shelf"
TEXT = "# Binder {number}\n\n" + "The umber binder leans on the shelf.\n\n" * 400


def has_waves(installation: Installation) -> bool:
    """Whether more documents are being indexed than there can be child processes."""
    health = installation.health()
    return health is not None and health["queue"]["running"] > 3


@pytest.mark.rule("indexing.alone")
def test_documents_in_waves_become_ready_once_despite_kills(installation: Installation, large: bool) -> None:
    ids: list[str] = []

    def add(number: int) -> str:
        with installation.client() as client:
            answer = upload(client, BUCKET, f"{number}.md", TEXT.format(number=number).encode())
        return str(answer.raise_for_status().json()["id"])

    with installation.client() as client:
        make_bucket(client, BUCKET)
    files, kills = (150, 3) if large else (100, 2)
    for kill in range(kills):
        with reading_nothing(installation.pids), ThreadPoolExecutor(4) as clients:
            ids += clients.map(add, range(kill * files, (kill + 1) * files))
        wait_until(lambda: has_waves(installation), "waves are being indexed")
        installation.crash()
    with installation.client() as client:
        assert {wait_ended(client, source_id, 120)["status"] for source_id in ids} == {"active"}
        assert sorted(source["id"] for source in list_sources(client, BUCKET)) == sorted(ids)
        (hit, *_) = search(client, f"binder {files}", BUCKET)
        assert get_source(client, hit["source_id"])["title"] in (f"{files}.md", f"{files}")
    installation.assert_intact()
