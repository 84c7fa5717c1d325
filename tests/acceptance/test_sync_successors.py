"""A file that is to replace a source which has been replaced itself meanwhile takes the place of that one."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from svc_cli.client.api import Client
from svc_cli.sync.index import Index, Row, State
from svc_cli.sync.mappings import Mapping
from svc_cli.sync.sending import SyncQueue, find_successor
from svc_cli.sync.snapshots import Fingerprint
from svc_cli.uploads.contents import read
from svc_cli.uploads.items import ReportItem
from tests.acceptance.calls import make_bucket, upload, wait_ended
from tests.acceptance.installations import Installation
from tests.acceptance.sync_folders import BUCKET, list_held, write

MAPPING = "docs"


@pytest.fixture
def client(installation: Installation) -> Iterator[Client]:
    with Client(installation.base_url, installation.key) as client:
        yield client


def _put(installation: Installation, text: str, replaces: str = "") -> str:
    """Upload `a.md` and wait until it is ready; its id."""
    with installation.client() as api:
        make_bucket(api, BUCKET)
        fields = {"title": "a.md", "mapping": MAPPING} | ({"replaces": replaces} if replaces else {})
        source_id = str(upload(api, BUCKET, "a.md", text.encode(), **fields).json()["id"])
        wait_ended(api, source_id)
    return source_id


def _send(installation: Installation, client: Client, path: Path, place_id: str, count: int) -> list[ReportItem]:
    """Send the file, and others beside it, as an update of `place_id`; what became of each."""
    told: list[ReportItem] = []
    mapping = Mapping(name=MAPPING, folder=path.parent, bucket=BUCKET)
    bucket_id = client.bucket(BUCKET)["id"]
    with Index(installation.root / "index.db") as index:
        queue = SyncQueue(client, index, bucket_id, 2, told.append)
        with queue:
            for number in range(count):
                one = path if number == 0 else write(path.parent, f"{number}.md", f"Words of {number}.")
                found = read(one, 10**6)
                print_of = Fingerprint.of(one.stat())
                row = Row(*print_of, time.time_ns(), one.name, one.name, found.sha256, None, None, State.SENT, None)
                place = place_id if number == 0 else None
                queue.add_file(mapping, row, found, place)
            queue.finish()
        assert index.list_batches() == []
        assert index.load()["a.md"].source_id == next(item.source_id for item in told if item.path == "a.md")
    return told


@pytest.mark.parametrize("count", [1, 5])
@pytest.mark.parametrize("is_gone", [False, True])
def test_the_successor_is_replaced_and_where_there_is_none_the_file_is_new(
    installation: Installation, client: Client, count: int, is_gone: bool
) -> None:
    first = _put(installation, "The first words.")
    second = _put(installation, "The second words.", first)
    third = _put(installation, "The third words.", second)
    assert find_successor(client, first) == third
    if is_gone:
        client.delete_source(third)
        assert find_successor(client, first) is None
    path = write(installation.root / "docs", "a.md", "The last words.")
    told = _send(installation, client, path, first, count)
    assert [item.error for item in told] == [None] * count
    (sent,) = [item for item in told if item.path == "a.md"]
    with installation.client() as api:
        wait_ended(api, str(sent.source_id))
    assert [source["id"] for source in list_held(installation) if source["title"] == "a.md"] == [sent.source_id]
