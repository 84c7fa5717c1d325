"""An update of a source that has been replaced meanwhile replaces the successor instead."""

import time
from pathlib import Path

from svc_cli.client.api import Client
from svc_cli.progress import Silent
from svc_cli.sync.apply import SyncQueue, find_source
from svc_cli.sync.index import FileRow, Index, State
from svc_cli.sync.mappings import Mapping, Ownership
from svc_cli.sync.run_state import SyncOptions, SyncReport, SyncRun
from svc_cli.transfer.contents import Fingerprint, read
from svc_cli.transfer.reports import ReportItem
from svc_cli.transfer.snapshots import Filters
from tests.acceptance.calls import take_in, wait_ended
from tests.acceptance.installations import Installation
from tests.acceptance.sync_folders import list_held, write

MAPPING = "docs"


def _put(installation: Installation, bucket: str, text: str, replaces: str = "") -> str:
    """Upload `a.md`, wait until it is ready, and return its id."""
    fields = {"title": "a.md", "mapping": MAPPING} | ({"replaces": replaces} if replaces else {})
    with installation.client() as api:
        return take_in(api, bucket, "a.md", text.encode(), **fields)


def _send(client: Client, index_path: Path, mapping: Mapping, place_id: str, count: int) -> list[ReportItem]:
    """Send `a.md` as an update of the source `place_id`, together with other files; return the result of each."""
    items: list[ReportItem] = []
    with Index(index_path) as index:
        options = SyncOptions(filters=Filters(max_bytes=10**6), max_tags=1, max_tag_characters=1, jobs=2)
        report = SyncReport(mapping=mapping.name, bucket=mapping.bucket)
        run = SyncRun(client, Silent(), report, items.append, mapping, options, index)
        with SyncQueue(run, client.bucket(mapping.bucket)["id"]) as queue:
            for number in range(count):
                name = f"{number}.md" if number else "a.md"
                path = write(mapping.folder, name, f"The last words of {name}.")
                found = read(path, 10**6)
                seen = Fingerprint.of(path.stat())
                row = FileRow(*seen, time.time_ns(), name, name, found.sha256, None, None, State.SENT, None)
                before = row._replace(source_id=place_id, place_id=place_id)
                queue.add_file(row, found, None if number else before)
            queue.finish()
        assert index.list_batches() == []
        assert index.load()["a.md"].source_id == next(item.source_id for item in items if item.path == "a.md")
    return items


def test_update_of_a_replaced_source_replaces_its_successor_or_creates_a_source(
    shared_installation: Installation,
) -> None:
    with Client(shared_installation.base_url, shared_installation.key) as client:
        for count, is_gone in [(1, False), (1, True), (5, False), (5, True)]:
            bucket = f"of-{count}-{'gone' if is_gone else 'there'}"
            first = _put(shared_installation, bucket, f"The first words of {bucket}.")
            second = _put(shared_installation, bucket, f"The second words of {bucket}.", first)
            third = _put(shared_installation, bucket, f"The third words of {bucket}.", second)
            last = find_source(client, first)
            assert last is not None, bucket
            assert last["id"] == third, bucket
            if is_gone:
                client.delete_source(third)
                assert find_source(client, first) is None, bucket
            mapping = Mapping(
                name=MAPPING, folder=shared_installation.root / bucket, bucket=bucket, ownership=Ownership.NAMED
            )
            items = _send(client, shared_installation.root / f"{bucket}.db", mapping, first, count)
            assert [item.error for item in items] == [None] * count, bucket
            (sent,) = [item for item in items if item.path == "a.md"]
            with shared_installation.client() as api:
                wait_ended(api, str(sent.source_id))
            held = [source["id"] for source in list_held(shared_installation, bucket) if source["title"] == "a.md"]
            assert held == [sent.source_id], bucket
