"""The code of a child process, which limits its own rights, reads documents from standard input and replies to each.

- The limits are set before the first byte is read. Time limits apply to each document.
- A timer ends the child if a document takes too long, even if the daemon and the fork server are gone.
- A document can't affect the next document: readers keep no state, the child can't write files, and an unexpected error
  ends the child.
"""

import ctypes
import errno
import gc
import logging
import math
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from svc_daemon.core.text.chunking import ChunkingOptions, RecognizedPage, chunk_document
from svc_daemon.core.text.media_types import declared_charset, detect, find_format
from svc_daemon.extract import documents, messages
from svc_daemon.extract.builders import one_line, page_warnings
from svc_daemon.extract.child_limits import CageLimits, ChildProgress
from svc_daemon.extract.documents import ExtractionFailed, NeedsOwnChild, NeedsRecognition, shares
from svc_daemon.extract.formats import Given, find_reader
from svc_daemon.wire.light.errors import shorten
from svc_daemon.wire.light.parsing import parse_json

_BLOB, _OUTPUT, _PAGES = 0, 3, 4
_PR_SET_PDEATHSIG = 1


def preload() -> None:
    """Do work in the fork server that each child would otherwise repeat.

    Children inherit the parsers and patterns of the formats that may share a child process.
    """
    # Turn off the parsers' logs, which nobody reads. If each child did this, it would copy shared memory.
    logging.disable()
    if sys.platform == "linux":
        _find_prctl()
    for filename in ("a.txt", "a.md", "a.csv", "a.json", "a.py", "a.rst"):
        list(_read(b"# a\n\nb,c\n", messages.DocumentRequest(filename, "", ChunkingOptions(), -1), None, CageLimits()))


def live(
    request: dict[str, Any],
    descriptors: Sequence[int],
    scratch: Path,
    limits: CageLimits,
    progress: ChildProgress,
    parent: int,
) -> NoReturn:
    """Run as the child. Never returns.

    `descriptors` are the document, the pipe for replies and, for a document whose pages were recognised, those pages.
    """
    status = messages.FAILED
    try:
        _confine(descriptors, limits, messages.count_documents(request), parent)
        # Collect garbage rarely, because parsers create few reference cycles. Large documents take 10 % less time.
        gc.set_threshold(100_000, 20, 20)
        with suppress(BrokenPipeError):
            if "recognize" in request:
                _recognize_all(request, limits, progress)
            else:
                _read_all(request, scratch, limits, progress)
        status = messages.REPLIED
    except MemoryError:
        # There may be no memory left for a message.
        status = messages.OUT_OF_MEMORY
    except OSError as error:
        # If the machine lacks a resource, report which one, because a retry may succeed.
        if error.errno == errno.ENOMEM:
            status = messages.OUT_OF_MEMORY
        else:
            status = (
                messages.SHORT + error.errno
                if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.ENFILE)
                else messages.REFUSED
            )
    finally:
        # The child must never run the fork server's code.
        os._exit(status)


def _confine(descriptors: Sequence[int], limits: CageLimits, documents: int | None, parent: int) -> None:
    """Restrict this process: set its limits, begin a new session, and close other descriptors.

    Descriptors 0 (the documents), 1 and 2 (null), 3 (the replies) and 4 (recognised pages) stay open.
    """
    blob, output, *pages = descriptors
    null = os.open(os.devnull, os.O_RDWR)
    # Descriptors 0 to 4 will be overwritten, so first copy these to higher numbers.
    spare = []
    for descriptor in (blob, null, null, output, *pages):
        copy = os.dup(descriptor)
        while copy <= _PAGES:
            copy = os.dup(descriptor)
        spare.append(copy)
    for number, descriptor in enumerate(spare):
        os.dup2(descriptor, number, inheritable=False)
    os.closerange(len(spare), os.sysconf("SC_OPEN_MAX"))
    os.setsid()
    # On Linux, this child dies with its fork server.
    if sys.platform == "linux":
        _find_prctl()(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
    for signal_number in (signal.SIGCHLD, signal.SIGALRM, signal.SIGPROF):
        signal.signal(signal_number, signal.SIG_DFL)
    os.umask(0o077)
    os.nice(limits.nice)
    _set_limit(resource.RLIMIT_AS, limits.memory_bytes, limits.memory_bytes)
    cpu_seconds = (documents or 1) * limits.cpu_seconds
    _set_limit(resource.RLIMIT_CPU, cpu_seconds, cpu_seconds + 1)
    file_bytes = 0 if documents else limits.file_bytes
    _set_limit(resource.RLIMIT_FSIZE, file_bytes, file_bytes)
    _set_limit(resource.RLIMIT_NOFILE, limits.descriptors, limits.descriptors)
    _set_limit(resource.RLIMIT_CORE, 0, 0)


@cache
def _find_prctl() -> Callable[..., int]:
    found: Callable[..., int] = ctypes.CDLL(None).prctl
    return found


def _set_limit(kind: int, soft: int, hard: int) -> None:
    _, highest = resource.getrlimit(kind)
    # The system's own limit may be lower.
    top = hard if highest == resource.RLIM_INFINITY else min(hard, highest)
    try:
        resource.setrlimit(kind, (min(soft, top), top))
    except ValueError:
        # macOS has no memory limits. On Linux, no child runs without a memory limit.
        if sys.platform == "linux":
            raise


def _read_all(request: dict[str, Any], scratch: Path, limits: CageLimits, progress: ChildProgress) -> None:
    """Read one document after another. The reply to a document is sent before the next document is read."""
    blob, out = os.fdopen(_BLOB, "rb"), os.fdopen(_OUTPUT, "wb", buffering=256 * 1024)
    is_wave = "documents" in request
    requests = parse_json(blob.readline()) if is_wave else [request["document"]]
    for number, message in enumerate(requests):
        progress.note(number)
        # If the fork server was killed, this alarm ends the child.
        signal.alarm(math.ceil(limits.wall_seconds) + 1)
        # This timer limits the processor time. RLIMIT_CPU would count whole seconds only, and earlier documents too.
        signal.setitimer(signal.ITIMER_PROF, limits.cpu_seconds)
        requested = messages.parse_document(message)
        if "pages" in request:
            with os.fdopen(_PAGES, "rb") as pages:
                requested = replace(requested, recognized=messages.parse_pages(pages.read()))
        data = blob.read(requested.size)
        try:
            out.writelines(_read(data, requested, None if is_wave else scratch, limits))
        except NeedsOwnChild:
            out.write(messages.own_child_line())
        except NeedsRecognition as needed:
            out.write(messages.recognition_line(needed.pages))
        except ExtractionFailed as failure:
            out.write(messages.failure_line(failure))
        except RecursionError:
            out.write(messages.failure_line(documents.unreadable("The document is nested too deeply.")))
        out.flush()
    out.close()


def _recognize_all(request: dict[str, Any], limits: CageLimits, progress: ChildProgress) -> None:
    """Recognise the text of pages, each within the limits, and reply to one after another."""
    from svc_daemon.extract.scans import layout, pictures, recognizers  # noqa: PLC0415 - needs libraries of an extra

    blob, out = os.fdopen(_BLOB, "rb"), os.fdopen(_OUTPUT, "wb")
    requested, data = messages.parse_document(request["document"]), blob.read()
    recognize = draw = None
    for number, page in enumerate(request["recognize"]):
        progress.note(number)
        signal.alarm(math.ceil(limits.wall_seconds) + 1)
        signal.setitimer(signal.ITIMER_PROF, limits.cpu_seconds)
        if recognize is None or draw is None:
            recognize = recognizers.load(limits.recognizer)
            draw = pictures.opened_pages(data, detect(data, requested.filename, requested.content_type))
        try:
            recognized = layout.recognize_page(draw(page), page, recognize)
        except pictures.PictureUnreadable as error:
            recognized = RecognizedPage(page, "", problem=str(error))
        out.write(messages.page_line(recognized))
        out.flush()
    out.close()


def _read(
    data: bytes, requested: messages.DocumentRequest, scratch: Path | None, limits: CageLimits
) -> Iterator[bytes]:
    """Read the document, and yield the lines of the reply.

    Raises ExtractionFailed if it has no readable text. If `scratch` is None, the document belongs to a wave: a format
    that can't share a child raises NeedsOwnChild.
    """
    content_type = detect(data, requested.filename, requested.content_type)
    # If no reader supports this type, detect the type again, without the declared type.
    format_, readable = find_format(content_type), content_type
    if format_ is None and (format_ := find_format(shown := detect(data, requested.filename))):
        readable = shown
    if format_ and not shares(format_):
        if scratch is None:
            raise NeedsOwnChild
        # Create the scratch folder too, because another program may have deleted it.
        folder = private_folder(scratch, os.getpid())
        folder.mkdir(mode=0o700, parents=True)
        os.chdir(folder)
    bare, charset = readable.partition(";")[0], declared_charset(requested.content_type)
    given = Given(data=data, filename=requested.filename, content_type=bare, limits=limits, charset=charset)
    given = replace(given, is_page=requested.is_page, recognized=requested.recognized)
    document = find_reader(bare)(given)
    missing = [page for page in document.pictured_pages if page not in requested.recognized]
    if missing and requested.awaits_recognition:
        raise NeedsRecognition(missing)
    warnings = list(page_warnings(document, requested.recognized, limits))
    if not any(map(str.isalnum, document.text)):
        if not document.pages_without_text:
            raise documents.no_text(one_line(" ".join(("The document holds no text.", *document.warnings))))
        nothing = f"None of the {document.pages} pages holds text"
        if limits.recognizer:
            raise documents.no_text(" ".join((f"{nothing}.", *warnings)))
        raise documents.no_text(f"{nothing}; they may be scanned images. {limits.unrecognized}".rstrip())
    chunks = chunk_document(document, requested.chunking)
    if len(chunks) > limits.chunks:
        raise documents.over_limit(f"The document has more than {limits.chunks} passages.")
    document = replace(document, warnings=tuple(shorten(one_line(each)) for each in (*document.warnings, *warnings)))
    yield from messages.reply_lines(content_type, document, chunks)


def private_folder(scratch: Path, pid: int) -> Path:
    """Return a child's folder for temporary files, created only for parsers that may need one."""
    return scratch / f"child-{pid}"
