"""The way into one bucket that all files of an upload share, and what a replayed key still stands for.

Each create has a key derived from what is sent, so a run that was killed goes on where it was: a key whose answer the
service knows replays it. Where what it made is gone by now (deleted, renamed, taken out of the bucket, given up), the
key of the next epoch makes it anew.
"""

from concurrent.futures import Executor
from dataclasses import dataclass, field

from svc_cli.client.api import Client
from svc_cli.client.storage import OnSent
from svc_cli.errors import ApiError, FileRefused
from svc_cli.uploads.deliveries import Parcel
from svc_cli.uploads.readings import changed
from svc_daemon.wire import Json

#: A file that was removed and sent again so often within the life of a key is a loop, not a wish.
MOST_EPOCHS = 1000


@dataclass(frozen=True, slots=True)
class Line:
    """Where files go. Threads share it."""

    client: Client
    bucket_id: str
    #: Sends the bytes of files, `jobs` at a time.
    pool: Executor
    jobs: int
    #: Told of each block that went out.
    on_sent: OnSent
    #: Batches that were opened.
    batch_ids: list[str] = field(default_factory=list)

    def send_bytes(self, upload_url: str, parcel: Parcel, *, resume: bool) -> None:
        """Send what the service doesn't have of a file. Raises FileRefused when it changed meanwhile."""
        try:
            parcel.item.sent_bytes += self.client.send_bytes(
                upload_url, parcel.content, resume=resume, on_sent=self.on_sent
            )
        except ApiError as error:
            if error.code == "checksum_mismatch":
                raise changed() from error
            raise

    def find_living(self, source_id: str, parcel: Parcel) -> Json | None:
        """The source behind a replayed answer as it is now; None when it is gone, renamed, or out of this bucket."""
        try:
            source = self.client.source(source_id)
        except ApiError as error:
            if error.code == "source_not_found":
                return None
            raise
        return source if self.is_here(source, parcel) else None

    def is_here(self, source: Json, parcel: Parcel) -> bool:
        """Whether a source still is what this file is to become."""
        return source["title"] == parcel.description.title and self.bucket_id in source["bucket_ids"]


def too_many_epochs() -> FileRefused:
    """What ends the search for a key that has not been used up."""
    return FileRefused("it was removed and sent again too often this week.", code="svc_too_many_epochs")
