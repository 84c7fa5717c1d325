"""Makes a sample data directory with data of every kind, which tests may damage; no daemon uses it."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from svc_daemon.offline.verify import Verdict, verify_directory
from svc_daemon.paths import DataFiles
from tests.api.daemons import Daemon
from tests.api.sessions import open_session, put_part
from tests.api.sites import hosting, receiving

#: Long enough for more than one chunk.
LONG = "\n\n".join(f"Paragraph {number} of the umber quay, which was built of grey stone." for number in range(60))


@dataclass(frozen=True)
class SampleDirectory:
    """A data directory without problems, and the ids of what it contains."""

    files: DataFiles
    #: Ready, only in `bucket`.
    source: str
    #: Ready, in both `bucket` and `other`.
    shared: str
    #: Failed: it contains no readable text.
    failed: str
    #: Imported with a webhook; ready, and the webhook was called.
    imported: str
    #: Imported with a webhook; failed, and the webhook was called.
    unreadable: str
    question: str
    #: Queued for indexing.
    queued: str
    #: An open upload session that has received some bytes.
    session: str
    bucket: str
    other: str
    team: str

    @property
    def index(self) -> Path:
        return self.files.index / f"{self.team}.db"

    def copy(self, root: Path) -> "SampleDirectory":
        shutil.copytree(self.files.root, root)
        return SampleDirectory(**{**vars(self), "files": DataFiles(root)})

    def sql(self, *statements: str) -> None:
        """Run the statements on the state database, without checking foreign keys."""
        change(self.files.state, *statements)

    def change_index(self, *statements: str) -> None:
        change(self.index, *statements)

    def stored(self) -> set[bytes]:
        """Return the contents of all blobs, parts and files that were set aside."""
        folders = (self.files.blobs, self.files.parts, self.files.aside)
        return {path.read_bytes() for folder in folders for path in folder.rglob("*") if path.is_file()}

    def verify(self, *, read_data: bool = False, repair: bool = False) -> Verdict:
        return verify_directory(self.files.root, read_data=read_data, repair=repair)

    def problems(self, *, read_data: bool = False) -> list[str]:
        """Return the problems as they are printed."""
        return list(self.verify(read_data=read_data).lines())[:-1]


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


@contextmanager
def make_sample_directory(daemon: Daemon) -> Iterator[SampleDirectory]:
    """Fill this daemon's directory with data of every kind, and close the daemon."""
    bucket, other = daemon.make_bucket(), daemon.make_bucket("other")
    daemon.start()
    source = daemon.add_ready(LONG.encode(), repeat_key="first")
    shared = daemon.add_ready(b"# Shared\n\nThe ochre bridge.\n")
    daemon.post("/v1/buckets/other/sources", json={"source_id": shared})
    question = daemon.post("/v1/buckets/inbox/qa", 201, json={"question": "Why?", "answer": "So."})
    failed = daemon.add_source(b"%PDF-1.4\nnothing", filename="a.pdf")
    with hosting() as site, receiving() as receiver:
        imported, unreadable = (_import(daemon, site.url(path), receiver.url) for path in ("/notes.md", "/file.pdf"))
        daemon.wait_ready(shared, question["id"], imported)
        for source_id in (failed, unreadable):
            daemon.wait_status(source_id, "failed")
        daemon.wait(lambda: daemon.count("delivery_attempts") == 2, "both calls are recorded")
    daemon.delete(f"/v1/sources/{daemon.add_ready(b'Soon gone.')}")
    daemon.wait(lambda: daemon.count("tombstones") == 0, "the deleted source is cleared")
    daemon.stop()
    queued = daemon.add_source(b"Later.\n")
    session = open_session(daemon, b"0123456789")
    put_part(daemon, session, b"0123456789", 0, 3)
    team = daemon.team_id
    daemon.close()
    ids = {"source": source, "shared": shared, "failed": failed, "imported": imported, "unreadable": unreadable}
    ids |= {"question": question["id"], "queued": queued, "session": session["session_id"]}
    yield SampleDirectory(files=daemon.files, bucket=bucket, other=other, team=team, **ids)


def _import(daemon: Daemon, url: str, webhook: str) -> str:
    body = {"url": url, "webhook": {"url": webhook}}
    return str(daemon.post("/v1/buckets/inbox/files/import", 201, json=body)["id"])
