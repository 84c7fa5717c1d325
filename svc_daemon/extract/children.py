"""The life of one child: it confines itself, reads one document from standard input, answers and ends.

Order matters: the limits stand before the first byte of the document is read, and a child that outlives everyone who
could stop it is ended by its own alarm.
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
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any, NoReturn

from svc_daemon.core.chunking import ChunkingOptions, chunk_document
from svc_daemon.core.documents import Document
from svc_daemon.core.media_types import detect, find_format
from svc_daemon.extract import failures
from svc_daemon.extract.builders import pages_named
from svc_daemon.extract.failures import ExtractionFailed
from svc_daemon.extract.formats import Given, find_reader
from svc_daemon.extract.limits import CageLimits
from svc_daemon.extract.messages import ANSWERED, FAILED, OUT_OF_MEMORY, REFUSED, SHORT, answer_lines, failure_line

_OUTPUT = 3
_PR_SET_PDEATHSIG = 1


def live(request: dict[str, Any], blob: int, output: int, folder: str, limits: CageLimits, parent: int) -> NoReturn:
    """Be the child: never returns, and runs no exit handlers of the process it was forked from."""
    status = FAILED
    try:
        _arrange_descriptors(blob, output)
        _confine(folder, limits, parent)
        _answer(request, limits)
        status = ANSWERED
    except MemoryError:
        # There may be none left to say so in a sentence.
        status = OUT_OF_MEMORY
    except OSError as error:
        # The machine's fault and not the document's, which may be read at the next attempt.
        status = _refused(error)
    finally:
        # Whatever went wrong, nothing of the server's may run in here.
        os._exit(status)


def _refused(error: OSError) -> int:
    """The exit status: it carries the errno of what the whole machine is short of, but not of what the cage bounds."""
    if error.errno == errno.ENOMEM:
        return OUT_OF_MEMORY
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.ENFILE):
        return SHORT + error.errno
    return REFUSED


def _confine(folder: str, limits: CageLimits, parent: int) -> None:
    os.setsid()
    _die_with(parent)
    for number in (signal.SIGCHLD, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    # The server kills at the wall limit; this is for a child whose server was killed.
    signal.alarm(math.ceil(limits.wall_seconds) + 1)
    os.chdir(folder)
    os.umask(0o077)
    os.nice(limits.nice)
    for kind, soft, hard in (
        (resource.RLIMIT_AS, limits.memory_bytes, limits.memory_bytes),
        (resource.RLIMIT_CPU, limits.cpu_seconds, limits.cpu_seconds + 1),
        (resource.RLIMIT_FSIZE, limits.file_bytes, limits.file_bytes),
        (resource.RLIMIT_NOFILE, limits.descriptors, limits.descriptors),
        (resource.RLIMIT_CORE, 0, 0),
    ):
        _, highest = resource.getrlimit(kind)
        # A machine that allows less than we do keeps its word.
        top = hard if highest == resource.RLIM_INFINITY else min(hard, highest)
        resource.setrlimit(kind, (min(soft, top), top))


def _die_with(parent: int) -> None:
    """Have the kernel kill this child when its server dies (Linux; elsewhere its alarm must do)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def _arrange_descriptors(blob: int, output: int) -> None:
    """Blob on 0, answer on 3, nothing else open but the null device; parsers may write to 1 and 2 what they like."""
    null = os.open(os.devnull, os.O_RDWR)
    # Out of the way first: any of the three may have one of the numbers they are going to.
    spare = [_above(descriptor) for descriptor in (blob, null, null, output)]
    for number, descriptor in enumerate(spare):
        os.dup2(descriptor, number, inheritable=False)
    os.closerange(_OUTPUT + 1, os.sysconf("SC_OPEN_MAX"))


def _above(descriptor: int) -> int:
    """A copy of a descriptor beyond the numbers that we hand out."""
    copy = os.dup(descriptor)
    while copy <= _OUTPUT:
        copy = os.dup(descriptor)
    return copy


def _answer(request: dict[str, Any], limits: CageLimits) -> None:
    logging.disable()
    # Parsers make few cycles; fewer collections are a tenth of the time of a large document.
    gc.set_threshold(100_000, 20, 20)
    with suppress(BrokenPipeError), os.fdopen(_OUTPUT, "wb", buffering=256 * 1024) as out:
        try:
            out.writelines(_extract(request, limits))
        except ExtractionFailed as failure:
            out.write(failure_line(failure))


def _extract(request: dict[str, Any], limits: CageLimits) -> Iterator[bytes]:
    """The lines of the answer; raises ExtractionFailed for what is known to go wrong with documents."""
    try:
        yield from _read(request, limits)
    except RecursionError as error:
        raise failures.unreadable("The document is nested too deeply.") from error


def _read(request: dict[str, Any], limits: CageLimits) -> Iterator[bytes]:
    with os.fdopen(0, "rb", closefd=False) as blob:
        data = blob.read()
    content_type = detect(data, request["filename"], request["content_type"])
    # A declared type that nobody knows hides none of the formats that the bytes and the name show.
    shown = detect(data, request["filename"])
    readable = shown if find_format(shown) and not find_format(content_type) else content_type
    given = Given(data=data, filename=request["filename"], content_type=readable, limits=limits)
    document = find_reader(readable)(given)
    if not any(map(str.isalnum, document.text)):
        raise failures.no_text(_why_empty(document))
    chunks = chunk_document(document, ChunkingOptions(**request["chunking"]))
    if len(chunks) > limits.chunks:
        raise failures.over_limit(f"The document falls into more than {limits.chunks} pieces.")
    yield from answer_lines(content_type, with_warnings(document), chunks)


def _why_empty(document: Document) -> str:
    if document.pages_without_text:
        return f"None of the {document.pages} pages holds text; they may be scanned images."
    return "The document holds no text."


def with_warnings(document: Document) -> Document:
    """The document with a sentence that names its pages without text, where it has some."""
    if not document.pages_without_text:
        return document
    has = "has" if len(document.pages_without_text) == 1 else "have"
    pages = pages_named(document.pages_without_text)
    sentence = f"{pages} {has} no text and can't be found; scanned images need text recognition first."
    return replace(document, warnings=(*document.warnings, sentence))
