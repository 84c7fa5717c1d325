"""One team's open index: its rows, its postings, and the numbers that connect them.

The postings are rebuilt from the rows, in a folder beside the old one, if they are missing or damaged, or to remove
the words of deleted documents for good. Without usable postings, searches are refused until then.
"""

import logging
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from svc_daemon.databases.sqlite import SqliteDatabase
from svc_daemon.errors import ShuttingDown
from svc_daemon.provider.contract import Building
from svc_daemon.provider.embedded import document_rows, documents
from svc_daemon.provider.embedded.documents import CountsCache
from svc_daemon.provider.embedded.packing import SLICE_CHUNKS, ChunkRow, in_batches
from svc_daemon.provider.embedded.postings import Posting, Postings, PostingsDamaged, check_files
from svc_daemon.provider.embedded.schema import translated
from svc_daemon.provider.errors import IndexBuilding, ProviderError

log = logging.getLogger(__name__)

#: How many numbers are reserved at a time.
NUMBERS = 256
#: If the postings of more removed documents than this are left, they are removed without waiting for another write.
MOST_GARBAGE = 500

#: Seconds before the next attempt to make postings, after an error such as a full disk.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0

#: How many indexes are built at a time in the background. Each takes a processor, and a writer's buffer.
MOST_BUILDS = 2
_turns = threading.Condition()
_built: set["TeamIndex"] = set()

AddPostings = Callable[[Iterable[Posting]], None]


class Prepared(NamedTuple):
    """A change of documents: their new postings, and what is done to the rows once these are committed."""

    postings: Iterable[Posting]
    work: Callable[[sqlite3.Connection], Any]


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """A change of the documents of some sources that waits, or is made."""

    source_ids: frozenset[str]
    #: Called while nothing else changes the index. Returns None if there is nothing to do.
    prepare: Callable[[], Prepared | None]
    #: Gets what the work on the rows returns.
    made: "Future[Any]" = field(default_factory=Future)


class TeamIndex:
    """An open index. Thread-safe."""

    def __init__(
        self, team_id: str, database: SqliteDatabase, folder: Path, on_building: Callable[[str], None]
    ) -> None:
        """Open `database`, whose postings are in a folder in `folder`.

        `on_building` is called with the team's id when postings are rebuilt and there are none to search meanwhile.
        """
        self.team_id = team_id
        self._on_building = on_building
        self.database = database
        self.counts = CountsCache()
        #: Held by each change of the index.
        self.writing = threading.RLock()
        #: Increases before postings of removed documents vanish. A search that began before must begin again.
        self.epoch = 0
        self._folder = folder
        self._postings: Postings | None = None
        self._numbers: list[int] = []
        self._numbering = threading.Lock()
        #: Changes that wait for `writing`.
        self.waiting: list[Change] = []
        #: When the postings began to be rebuilt, in monotonic seconds, and of how many chunks they are made so far.
        self._began_s, self._done, self._total = 0.0, 0, 0
        self._closed = threading.Event()
        self._builder: threading.Thread | None = None
        self._building = threading.Lock()

    def open(self) -> None:
        """Remove what an earlier process has left half done, and open the postings, or begin to rebuild them."""
        for key in self.database.read(document_rows.list_hidden):
            remove_hidden(self.database, key)
        number, building = self.database.read(document_rows.find_postings)
        self._sweep({number, building})
        if number:
            try:
                self._postings = self._open_checked(number)
            except (PostingsDamaged, OSError) as error:
                log.warning("the postings of %s are rebuilt from its texts: %s", self.team_id, error)
        if self._postings is None and not self.database.read(documents.count_posted):
            self._postings = Postings(self._folder_of(number + 1), is_new=True)
            self.database.write(lambda connection: document_rows.name_postings(connection, number + 1, 0))
        elif self._postings is None or building:
            self._start_building()

    def close(self) -> None:
        """Stop rebuilding postings, and close them."""
        self._closed.set()
        with _turns:
            _turns.notify_all()
        if self._builder is not None:
            self._builder.join()
        # Wait for a build in another thread, too, so that nothing writes to the folders from now on.
        with self._building, self.writing:
            if self._postings is not None:
                self._postings.close()

    def postings(self) -> Postings:
        """Return the postings to search; raises IndexBuilding while there are none."""
        postings = self._postings
        if postings is not None:
            return postings
        raise IndexBuilding(self.team_id, self._progress())

    def building(self) -> Building | None:
        """Return how far the postings are rebuilt; None if there are postings to search."""
        return None if self._postings is not None else self._progress()

    def _progress(self) -> Building:
        return Building(self._done, self._total, time.monotonic() - self._began_s)

    def take_numbers(self, count: int) -> list[int]:
        """Return numbers for documents in the postings, which no other document ever gets."""
        if self._closed.is_set():
            # Otherwise, `close` could wait for one write after another.
            raise ShuttingDown
        with self._numbering:
            if len(self._numbers) < count:
                self._numbers += self.database.write(
                    lambda connection: document_rows.reserve_numbers(connection, max(count, NUMBERS))
                )
            taken, self._numbers = self._numbers[:count], self._numbers[count:]
            return taken

    @contextmanager
    def posting(self) -> Iterator[AddPostings]:
        """Lend a function that adds postings. They are committed at the end, without those of removed documents."""
        with self._to_write() as postings:
            if postings is None:
                # They are made from the rows.
                yield lambda _: None
                return
            yield postings.add
            self._commit(postings)

    @property
    def uncommitted(self) -> object:
        """Equal to what it was before, unless postings that were added, but not committed, were dropped meanwhile."""
        return self._postings, self._postings and self._postings.dropped

    def add(self, postings: Iterable[Posting]) -> None:
        """Add postings, to be committed later."""
        with self._to_write() as target:
            if target is not None:
                target.add(postings)

    def remove(self, numbers: Iterable[int]) -> None:
        """Remove postings, to be committed later."""
        with self._to_write() as target:
            if target is not None:
                target.remove(numbers)

    def clear_garbage(self, *, more_than: int = MOST_GARBAGE) -> None:
        """Remove the postings of removed documents if there are more than this many."""
        with self.writing, self._to_write() as postings:
            if postings is not None and self.database.read(document_rows.count_garbage) > more_than:
                self._commit(postings)

    @contextmanager
    def _to_write(self) -> Iterator[Postings | None]:
        """Lend the postings. If a write fails, and their files are damaged, they are rebuilt."""
        postings = self._postings
        try:
            yield postings
        except OSError:
            if postings is not None:
                try:
                    check_files(postings.folder)
                except PostingsDamaged as damaged:
                    log.warning("the postings of %s are rebuilt from its texts: %s", self.team_id, damaged)
                    self._postings = None
                    postings.close()
                    self._start_building()
            raise

    def _start_building(self) -> None:
        self._began_s, self._done, self._total = time.monotonic(), 0, 0
        if self._postings is None:
            self._on_building(self.team_id)
        self._builder = threading.Thread(target=self._build_until_done, name=f"postings:{self.team_id}", daemon=True)
        self._builder.start()

    def read_slices(self, stored: sqlite3.Row) -> Iterator[tuple[int, list[ChunkRow]]]:
        """Read the chunks of a document in slices, each with the ordinal of its first chunk."""
        for ordinal in range(0, stored["chunks"], SLICE_CHUNKS):
            yield (
                ordinal,
                self.database.read(
                    lambda connection: documents.read_chunk_rows(
                        connection,
                        stored["document_key"],
                        ordinal,  # noqa: B023 - run at once
                        min(SLICE_CHUNKS, stored["chunks"] - ordinal),  # noqa: B023
                    )
                ),
            )

    def build(self) -> None:
        """Rebuild the postings from the rows, and use them instead of the old ones.

        After a kill, the next call goes on where this one was.
        """
        with self._building, ExitStack() as stack, suppress(ShuttingDown):
            if self._closed.is_set():
                return
            number, is_new = self.database.write(document_rows.begin_building)
            try:
                target = Postings(self._folder_of(number), is_new=is_new)
            except (PostingsDamaged, OSError):
                target = Postings(self._folder_of(number), is_new=True)
            stack.callback(target.close)
            self._fill(target)
            self._use(target, number)
            stack.pop_all()

    def _build_until_done(self) -> None:
        pause_s = FIRST_PAUSE_S
        while not self._closed.is_set():
            try:
                with translated(self.team_id), self._in_turn():
                    self.build()
            except ProviderError as error:
                log.warning("the postings of %s can't be made, which is tried again: %s", self.team_id, error)
                self._closed.wait(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            else:
                break

    @contextmanager
    def _in_turn(self) -> Iterator[None]:
        """Wait until few enough others are built, or the index is closed."""
        with _turns:
            _turns.wait_for(lambda: self._closed.is_set() or len(_built) < MOST_BUILDS)
            _built.add(self)
        try:
            yield
        finally:
            with _turns:
                _built.discard(self)
                _turns.notify()

    def _fill(self, target: Postings) -> None:
        """Add all documents to postings that are rebuilt. Raises ShuttingDown if the index is closed."""
        while missing := self._list_missing(target):
            wanted = self.database.read(documents.count_posted)
            self._total = sum(wanted.values())
            self._done = self._total - sum(wanted.get(each, 0) for each in missing)
            for batch in in_batches(missing, wanted):
                self._post(target, batch)
                target.commit()
                self._done += sum(wanted.get(each, 0) for each in batch)

    def _use(self, target: Postings, number: int) -> None:
        """Add what was written meanwhile, and search these postings from now on."""
        with self.writing:
            self._post(target, self._list_missing(target))
            wanted = self.database.read(documents.count_posted)
            garbage = {each: count for each, count in target.count_documents().items() if each not in wanted}
            target.remove(garbage)
            target.commit()
            self.database.write(
                lambda connection: document_rows.end_building(connection, number, sum(garbage.values()))
            )
            self.epoch += 1
            old, self._postings = self._postings, target
        if old is not None:
            old.close()
        self._sweep({number})

    def _list_missing(self, target: Postings) -> list[int]:
        held = target.count_documents()
        wanted = self.database.read(documents.count_posted)
        return sorted(number for number, chunks in wanted.items() if held.get(number, 0) < chunks)

    def _post(self, target: Postings, numbers: Sequence[int]) -> None:
        """Add the postings of these documents, unless they have changed meanwhile.

        Raises ShuttingDown if the index is closed, also within a large document.
        """
        for number in numbers:
            stored = self.database.read(lambda connection: documents.find_by_number(connection, number))  # noqa: B023
            if stored is not None and stored["language"] is None:
                # An index of an earlier version doesn't know it.
                stored = self.database.write(lambda connection: documents.find_out_language(connection, number))  # noqa: B023
            if stored is None:
                continue
            wording = self.database.read(lambda connection: documents.read_wording(connection, stored))  # noqa: B023
            for slice_ in self.read_slices(stored):
                if self._closed.is_set():
                    raise ShuttingDown
                target.add(wording.postings(*slice_))

    def _open_checked(self, number: int) -> Postings:
        """Open the postings, and compare them with the rows. Raises PostingsDamaged."""
        postings = Postings(self._folder_of(number))
        held, wanted = postings.count_documents(), self.database.read(documents.count_posted)
        last_key = self.database.read(document_rows.find_last_number)
        if max(held, default=0) > last_key:
            # Documents to come would get numbers that others have in these postings.
            raise PostingsDamaged("they are of a later state of the rows, from before a restore")
        lost = [each for each, chunks in wanted.items() if held.get(each, 0) < chunks]
        if lost:
            raise PostingsDamaged(f"{len(lost)} documents are not in them")
        garbage = [each for each in held if each not in wanted]
        known = set(self.database.read(document_rows.list_garbage))
        if set(garbage) - known:
            self.database.write(lambda connection: document_rows.note_garbage(connection, garbage, 0))
        return postings

    def _commit(self, postings: Postings) -> None:
        garbage = self.database.read(document_rows.list_garbage)
        postings.remove(garbage)
        self.epoch += bool(garbage)
        postings.commit()
        if garbage:
            # If this is lost, they are removed again.
            self.database.submit(partial(document_rows.forget_garbage, numbers=garbage))

    def _folder_of(self, number: int) -> Path:
        return postings_folder(self.database.path, number)

    def _sweep(self, numbers: set[int]) -> None:
        """Remove folders of postings that the file doesn't name."""
        named = {self._folder_of(number) for number in numbers}
        for path in self._folder.glob(f"{self.database.path.stem}.postings-*"):
            if path not in named:
                shutil.rmtree(path, ignore_errors=True)
                if not path.is_dir() or path.is_symlink():
                    path.unlink(missing_ok=True)


def postings_folder(path: Path, number: int) -> Path:
    """Return the folder of postings with this number, beside the index file."""
    return path.with_name(f"{path.stem}.postings-{number}")


def remove_large(index: TeamIndex, document_key: int) -> None:
    """Remove a hidden document, and the postings of all its chunks at once: searches would read past each of them."""
    remove_hidden(index.database, document_key)
    index.clear_garbage(more_than=0)


def remove_hidden(database: SqliteDatabase, document_key: int) -> None:
    """Remove a hidden document. Its row is deleted last, so that after a crash, the next start removes the rest."""
    while database.write(lambda connection: document_rows.remove_last_chunks(connection, document_key)):
        pass
    while database.write(lambda connection: document_rows.remove_last_piece(connection, document_key)):
        pass
    database.write(lambda connection: document_rows.remove_row(connection, document_key))
