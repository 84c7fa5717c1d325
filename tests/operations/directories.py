"""A whole data directory with something of everything, closed, to be broken by hand."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from svc_daemon.offline_verify import Verdict, verify_directory
from svc_daemon.paths import DataFiles
from tests.api.daemons import Daemon
from tests.api.sessions import open_session, put_part
from tests.api.sites import hosting, receiving

#: Long enough for more than one chunk.
LONG = "\n\n".join(f"Paragraph {number} of the umber quay, which was built of grey stone." for number in range(60))


@dataclass(frozen=True)
class Whole:
    """The directory and the ids of what is in it."""

    files: DataFiles
    #: Ready, in the bucket alone.
    source: str
    #: Ready, in both buckets.
    shared: str
    #: Could not be read.
    failed: str
    #: Imported with a webhook, ready, called.
    imported: str
    #: Imported with a webhook, failed, called.
    unreadable: str
    question: str
    #: Waits to be indexed.
    queued: str
    #: An upload session with some bytes.
    session: str
    bucket: str
    other: str
    team: str

    @property
    def index(self) -> Path:
        return self.files.index / f"{self.team}.db"

    def copy(self, root: Path) -> "Whole":
        shutil.copytree(self.files.root, root)
        return Whole(**{**vars(self), "files": DataFiles(root)})

    def sql(self, *statements: str) -> None:
        """Change rows of the state by hand, whatever they refer to."""
        change(self.files.state, *statements)

    def change_index(self, *statements: str) -> None:
        change(self.index, *statements)

    def verify(self, *, read_data: bool = False, repair: bool = False) -> Verdict:
        return verify_directory(self.files.root, read_data=read_data, repair=repair)

    def problems(self, *, read_data: bool = False) -> list[str]:
        """The problems, as they are printed."""
        return list(self.verify(read_data=read_data).lines())[:-1]


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


@contextmanager
def filled(daemon: Daemon) -> Iterator[Whole]:
    """The directory of this daemon with something of everything; the daemon is closed."""
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
        daemon.wait(lambda: daemon.count("delivery_attempts") == 2, "both calls are written down")
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
    yield Whole(files=daemon.files, bucket=bucket, other=other, team=team, **ids)


def _import(daemon: Daemon, url: str, webhook: str) -> str:
    body = {"url": url, "webhook": {"url": webhook}}
    return str(daemon.post("/v1/buckets/inbox/files/import", 201, json=body)["id"])
