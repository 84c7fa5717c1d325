"""The postings of an index: which terms are in which chunks, in a folder of the search library Tantivy.

- Tantivy syncs its files, but not the folder after it has renamed `meta.json`, so `commit` does that.
- An open folder has a thread of Tantivy's, which reads `meta.json` twice a second, and a writer has six and a buffer.
  So both are opened when needed. A writer is closed after a time without writes, and of many, all but the latest are.
- Each file ends with a checksum by Tantivy, which itself never checks it. Its files are mapped into memory, and reading
  a mapped file that was cut short kills the process. So all files are checked before they are opened.
- Files that `meta.json` doesn't name are left from a crash, and removed on opening. Tantivy's own list of such files
  can lack some of them.
"""

import errno
import logging
import os
import re
import shutil
import struct
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import tantivy

from svc_daemon.paths import sync_folder
from svc_daemon.provider.embedded.schema import ORDINAL_BITS
from svc_daemon.wire.light.parsing import parse_json

log = logging.getLogger(__name__)

#: Size of a writer's buffer, at least 15 MB.
HEAP_BYTES = 30_000_000
#: A writer is closed after this time without a commit.
IDLE_S = 5.0
#: How many folders and how many writers a process has open, if no more are in use.
MOST_OPEN, MOST_WRITERS = 100, 8
#: What ends each file of Tantivy's: the length of the footer before it, and this number.
_MAGIC, _END = 1337, struct.Struct("<II")
#: How much of a file is read at a time.
_BLOCK_BYTES = 2**20
#: The suffixes of the files of a segment; those of its deleted documents are named by the number of a commit too.
_SUFFIXES = (".idx", ".pos", ".term", ".store", ".fast", ".fieldnorm")
#: As many files as a commit has open at a time, and some more.
_MANY_FILES = 32
#: How the library names the number of an error of the system.
_NUMBER = re.compile(r"os error (\d+)|Os \{ code: (\d+)")
#: What says nothing about a file that can't be read.
_LACKS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
#: Tantivy's own files beside those of segments.
_LOCKS = frozenset({".tantivy-writer.lock", ".tantivy-meta.lock"})
_OWN = _LOCKS | {"meta.json", ".managed.json"}


class PostingsDamaged(Exception):
    """The folder is not there, or its files are not what Tantivy wrote."""


class Posting(NamedTuple):
    """The terms of a chunk, in strings separated by spaces."""

    #: The document's number in the postings, and the chunk's ordinal (see `schema`).
    key: int
    buckets: str
    #: The words of headings and text, in order.
    words: str
    #: Other forms of these words.
    forms: str
    #: The words by which the document is called, and their other forms.
    name: str
    #: The same in a document's first chunk, so that documents are found by them, too.
    called: str


SCHEMA = (
    tantivy.SchemaBuilder()
    .add_unsigned_field("chunk", fast=True)
    .add_text_field("document", tokenizer_name="raw", index_option="basic")
    .add_text_field("buckets", tokenizer_name="terms", index_option="basic")
    .add_text_field("words", tokenizer_name="terms", index_option="position")
    .add_text_field("forms", tokenizer_name="terms", index_option="freq")
    .add_text_field("name", tokenizer_name="terms", index_option="freq")
    .add_text_field("called", tokenizer_name="terms", index_option="freq")
    .build()
)


class Latest:
    """Postings of which something is open, in the order of their use. Thread-safe."""

    def __init__(self, most: int, close: Callable[["Postings"], bool]) -> None:
        """With more than `most`, call `close` for those that were used longest ago. It returns False if it can't."""
        self._most = most
        self._close = close
        self._lock = threading.Lock()
        self._used: dict[Postings, None] = {}

    def use(self, postings: "Postings") -> None:
        with self._lock:
            self._used.pop(postings, None)
            self._used[postings] = None
            surplus = [*self._used][: -self._most] if len(self._used) > self._most else []
        for each in surplus:
            if self._close(each):
                self.forget(each)

    def count(self) -> int:
        return len(self._used)

    def forget(self, postings: "Postings") -> None:
        with self._lock:
            self._used.pop(postings, None)


class Postings:
    """A folder of postings. Its writes must be serialized by the caller; searches may run meanwhile."""

    def __init__(self, folder: Path, *, is_new: bool = False) -> None:
        """Check the folder, or make it again if `is_new`. Raises PostingsDamaged or OSError."""
        self.folder = folder
        #: Held while anything is opened, written or closed.
        self._lock = threading.Lock()
        self._index: tantivy.Index | None = None
        self._writer: tantivy.IndexWriter | None = None
        self._closing: threading.Timer | None = None
        self._uses = 0
        self._is_closed = False
        #: Whether anything was added or removed since the last commit.
        self._is_changed = False
        #: How many writers were closed or dropped, each with what it had not committed.
        self.dropped = 0
        if is_new:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(mode=0o700, parents=True)
        else:
            sweep(folder)
        self.searcher()
        if is_new:
            sync_folder(folder)
            sync_folder(folder.parent)

    def add(self, postings: Iterable[Posting]) -> None:
        """Add chunks with the next commit."""
        with self._writing() as writer:
            self._is_changed = True
            for each in postings:
                document = tantivy.Document()
                document.add_unsigned("chunk", each.key)
                document.add_text("document", str(each.key >> ORDINAL_BITS))
                for field in ("buckets", "words", "forms", "name", "called"):
                    if text := getattr(each, field):
                        document.add_text(field, text)
                writer.add_document(document)

    def remove(self, documents: Iterable[int]) -> None:
        """Remove documents with the next commit; those added after this call stay."""
        with self._writing() as writer:
            self._is_changed = True
            for number in documents:
                writer.delete_documents_by_term("document", str(number))

    def commit(self) -> None:
        """Make additions and removals durable, and show them to searches."""
        with self._writing() as writer:
            writer.commit()
            sync_folder(self.folder)
            self._is_changed = False
            self._open().reload()

    def searcher(self) -> tantivy.Searcher:
        """Return what searches the latest commit. Raises OSError."""
        index = self._index
        if index is None:
            with self._lock, translated():
                index = self._open()
        _open_folders.use(self)
        return index.searcher()

    def count_documents(self) -> dict[int, int]:
        """Return the numbers of chunks of all documents; removed ones may still be among them."""
        with translated():
            return {int(term): count for term, count in self.searcher().terms_with_prefix("document", "")}

    def close(self) -> None:
        """Close the writer, after it has finished merging. Later writes are refused."""
        with self._lock:
            self._is_closed = True
            if self._closing is not None:
                self._closing.cancel()
            self._close_writer()
        _open_folders.forget(self)

    def close_folder(self) -> bool:
        """Close the folder until it is used again, and return True, unless it is in use."""
        if not self._lock.acquire(blocking=False):
            return False
        with ExitStack() as stack:
            stack.callback(self._lock.release)
            if self._writer is None:
                self._index = None
            return self._writer is None

    def close_writer(self) -> bool:
        """Close the writer, and return True, unless it is in use or has something to commit."""
        if not self._lock.acquire(blocking=False):
            return False
        with ExitStack() as stack:
            stack.callback(self._lock.release)
            if self._is_changed:
                return False
            self._close_writer()
            return True

    def _open(self) -> tantivy.Index:
        if self._index is None:
            index = tantivy.Index(SCHEMA, str(self.folder), reuse=True)
            index.register_tokenizer("terms", tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build())
            index.config_reader("manual")
            self._index = index
        return self._index

    def _close_writer(self) -> None:
        writer, self._writer, self._is_changed = self._writer, None, False
        _open_writers.forget(self)
        if writer is not None:
            self.dropped += 1
            try:
                with translated():
                    writer.wait_merging_threads()
            except OSError as error:
                # What was committed is durable, and a merge can be made again.
                log.warning("the segments of %s were not merged: %s", self.folder.name, error)

    @contextmanager
    def _writing(self) -> Iterator[tantivy.IndexWriter]:
        """Lend the writer. After an error it is dropped, with what it has not committed."""
        with self._lock:
            if self._is_closed:
                raise OSError("the postings are closed")
            try:
                with translated():
                    if self._writer is None:
                        self._writer = self._open().writer(heap_size=HEAP_BYTES, num_threads=1)
                    _open_writers.use(self)
                    yield self._writer
            except BaseException:
                # To forget it isn't enough: the error's traceback would keep it, and with it the folder's lock.
                self._close_writer()
                raise
            self._uses += 1
            if self._closing is None:
                self._await_idleness()

    def _await_idleness(self) -> None:
        self._closing = threading.Timer(IDLE_S, self._close_if_idle, (self._uses,))
        self._closing.daemon = True
        self._closing.start()

    def _close_if_idle(self, uses: int) -> None:
        with self._lock:
            self._closing = None
            # What was not committed would be lost with the writer, and the commit after it would not report it.
            if self._uses == uses and not self._is_changed:
                self._close_writer()
            elif self._writer is not None:
                self._await_idleness()


_open_folders = Latest(MOST_OPEN, Postings.close_folder)
_open_writers = Latest(MOST_WRITERS, Postings.close_writer)


def count_terms(folder: Path, *fields: str) -> list[dict[str, int]]:
    """For each field, return the numbers of chunks of its terms; removed chunks may still be among them.

    The files of the folder must be whole, and are not changed.
    """
    # Tantivy makes lock files in a folder that it opens, one of them once in a thread of its own, which can keep the
    # folder from being removed at the first attempt.
    with TemporaryDirectory() as outer, TemporaryDirectory(dir=outer, ignore_cleanup_errors=True) as name, translated():
        for path in folder.iterdir():
            if path.name not in _LOCKS:
                Path(name, path.name).symlink_to(path.resolve())
        searcher = tantivy.Index.open(name).searcher()
        return [dict(searcher.terms_with_prefix(field, "")) for field in fields]


def read_meta(folder: Path) -> frozenset[str]:
    """Return the names of the files that `meta.json` names. Raises PostingsDamaged or OSError."""
    try:
        segments = parse_json((folder / "meta.json").read_bytes())["segments"]
        names = set()
        for segment in segments:
            stem = segment["segment_id"].replace("-", "")
            names |= {stem + suffix for suffix in _SUFFIXES}
            if segment["deletes"] is not None:
                names.add(f"{stem}.{segment['deletes']['opstamp']}.del")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, OSError) and error.errno in _LACKS:
            raise
        raise PostingsDamaged(f"its list of files can't be read: {error}") from error
    return frozenset(names)


def check_files(folder: Path) -> None:
    """Raise PostingsDamaged unless every file that `meta.json` names is as Tantivy wrote it. Raises OSError, too."""
    for name in sorted(read_meta(folder)):
        try:
            _check_file(folder / name)
        except (OSError, ValueError, KeyError, TypeError, struct.error) as error:
            if isinstance(error, OSError) and error.errno in _LACKS:
                raise
            raise PostingsDamaged(f"{name} can't be read: {error}") from error


def sweep(folder: Path) -> None:
    """Check the files, and remove those that `meta.json` doesn't name. Raises PostingsDamaged or OSError."""
    check_files(folder)
    named = read_meta(folder) | _OWN
    for path in folder.iterdir():
        if path.name not in named:
            path.unlink()


def _check_file(path: Path) -> None:
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(size - _END.size)
        length, magic = _END.unpack(file.read(_END.size))
        body = size - _END.size - length
        if magic != _MAGIC or body < 0:
            raise ValueError("it is cut short")
        file.seek(body)
        wanted = parse_json(file.read(length))["crc"]
        file.seek(0)
        found, left = 0, body
        while left > 0 and (block := file.read(min(left, _BLOCK_BYTES))):
            found, left = zlib.crc32(block, found), left - len(block)
    if left or found != wanted:
        raise ValueError("its checksum differs")


@contextmanager
def translated() -> Iterator[None]:
    """Within the block, raise what Tantivy raises as OSError, with its number if it names one; a panic of its too."""
    try:
        yield
    except BaseException as error:
        # A panic of the library is no Exception.
        if not isinstance(error, ValueError | RuntimeError) and type(error).__name__ != "PanicException":
            raise
        message, named = f"the search library failed: {error}", _NUMBER.search(str(error))
        number = int(named[1] or named[2]) if named else find_lack()
        raise (OSError(number, message) if number else OSError(message)) from error


def find_lack() -> int | None:
    """Return the number of the error with which a few files can't be opened now; None if they can.

    Of an error in a thread of its own, the library reports only that there was one.
    """
    opened: list[int] = []
    try:
        for _ in range(_MANY_FILES):
            opened += [os.open(os.devnull, os.O_RDONLY)]
    except OSError as lack:
        return lack.errno
    finally:
        for descriptor in opened:
            os.close(descriptor)
    return None
