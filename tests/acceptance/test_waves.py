"""Waves of small documents survive kill -9 of a real daemon: no document fails for having been in work."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from tests.acceptance.calls import get_source, list_sources, make_bucket, search, upload, wait_ended
from tests.acceptance.installations import Installation, wait_until
from tests.processes import children_of

BUCKET = "shelf"
#: Uploaded before each kill; several waves.
FILES = 150
TEXT = "# Binder {number}\n\n" + "The umber binder leans on the shelf.\n\n" * 400


def has_waves(installation: Installation) -> bool:
    """Whether more documents are in work than there may be children."""
    health = installation.health()
    return health is not None and health["queue"]["running"] > 3


@contextmanager
def nothing_read(installation: Installation) -> Iterator[None]:
    """The extraction server stands still meanwhile, so that what is uploaded waits together."""
    servers = [server for pid in installation.pids for server in children_of(pid, "fork_server")]
    assert len(servers) == len(installation.pids)
    for server in servers:
        server.suspend()
    try:
        yield
    finally:
        for server in servers:
            server.resume()


def test_kills_in_the_middle_of_waves_fail_double_and_lose_nothing(installation: Installation) -> None:
    ids: list[str] = []

    def add(number: int) -> str:
        with installation.client() as client:
            answer = upload(client, BUCKET, f"{number}.md", TEXT.format(number=number).encode())
        return str(answer.raise_for_status().json()["id"])

    with installation.client() as client:
        make_bucket(client, BUCKET)
    for kill in range(3):
        with nothing_read(installation), ThreadPoolExecutor(4) as clients:
            ids += clients.map(add, range(kill * FILES, (kill + 1) * FILES))
        wait_until(lambda: has_waves(installation), "waves are in work")
        installation.crash()
    with installation.client() as client:
        assert {wait_ended(client, source_id, 120)["status"] for source_id in ids} == {"active"}
        assert sorted(source["id"] for source in list_sources(client, BUCKET)) == sorted(ids)
        (hit, *_) = search(client, f"binder {FILES}", BUCKET)
        assert get_source(client, hit["source_id"])["title"] in (f"{FILES}.md", f"{FILES}")
    installation.hold_to_every_promise()
