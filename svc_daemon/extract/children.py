"""The life of one child: it confines itself, reads one document from standard input, replies and ends.

Order matters: the limits are set before the first byte of the document is read. A child that outlives both the daemon
and its server is ended by its own alarm.
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

from svc_daemon.core.text.chunking import ChunkingOptions, chunk_document
from svc_daemon.core.text.media_types import detect, find_format
from svc_daemon.extract import failures
from svc_daemon.extract.builders import pages_named
from svc_daemon.extract.failures import ExtractionFailed
from svc_daemon.extract.formats import Given, find_reader
from svc_daemon.extract.limits import CageLimits
from svc_daemon.extract.messages import FAILED, OUT_OF_MEMORY, REFUSED, REPLIED, SHORT, failure_line, reply_lines

_OUTPUT = 3
_PR_SET_PDEATHSIG = 1


def live(request: dict[str, Any], blob: int, output: int, folder: str, limits: CageLimits, parent: int) -> NoReturn:
    """Be the child: never returns, and runs no exit handlers of the process it was forked from."""
    status = FAILED
    try:
        _confine(blob, output, folder, limits, parent)
        logging.disable()
        # Parsers make few cycles; fewer collections save a tenth of the time of a large document.
        gc.set_threshold(100_000, 20, 20)
        with suppress(BrokenPipeError), os.fdopen(_OUTPUT, "wb", buffering=256 * 1024) as out:
            try:
                out.writelines(_read(request, limits))
            except ExtractionFailed as failure:
                out.write(failure_line(failure))
            except RecursionError:
                out.write(failure_line(failures.unreadable("The document is nested too deeply.")))
        status = REPLIED
    except MemoryError:
        # There may be too little left to build a sentence.
        status = OUT_OF_MEMORY
    except OSError as error:
        # What the whole machine is short of is reported by its errno: the next attempt may succeed. What only the
        # cage limits is the document's fault.
        if error.errno == errno.ENOMEM:
            status = OUT_OF_MEMORY
        else:
            status = SHORT + error.errno if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.ENFILE) else REFUSED
    finally:
        # Nothing of the server's may run in the child, whatever went wrong.
        os._exit(status)


def _confine(blob: int, output: int, folder: str, limits: CageLimits, parent: int) -> None:
    """Blob on 0, reply on 3, the null device on 1 and 2, nothing else open; a session and limits of its own."""
    null = os.open(os.devnull, os.O_RDWR)
    # Copies above the target numbers first: any of the three may already be one of them.
    spare = []
    for descriptor in (blob, null, null, output):
        copy = os.dup(descriptor)
        while copy <= _OUTPUT:
            copy = os.dup(descriptor)
        spare.append(copy)
    for number, descriptor in enumerate(spare):
        os.dup2(descriptor, number, inheritable=False)
    os.closerange(_OUTPUT + 1, os.sysconf("SC_OPEN_MAX"))
    os.setsid()
    # On Linux the kernel kills this child when its server dies; elsewhere the alarm must do.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
    for signal_number in (signal.SIGCHLD, signal.SIGALRM):
        signal.signal(signal_number, signal.SIG_DFL)
    # The server kills at the wall limit; this is for a child whose server was killed.
    signal.alarm(math.ceil(limits.wall_seconds) + 1)
    os.chdir(folder)
    os.umask(0o077)
    os.nice(limits.nice)
    _set_limit(resource.RLIMIT_AS, limits.memory_bytes, limits.memory_bytes)
    _set_limit(resource.RLIMIT_CPU, limits.cpu_seconds, limits.cpu_seconds + 1)
    _set_limit(resource.RLIMIT_FSIZE, limits.file_bytes, limits.file_bytes)
    _set_limit(resource.RLIMIT_NOFILE, limits.descriptors, limits.descriptors)
    _set_limit(resource.RLIMIT_CORE, 0, 0)


def _set_limit(kind: int, soft: int, hard: int) -> None:
    _, highest = resource.getrlimit(kind)
    # The machine may allow less than our limit.
    top = hard if highest == resource.RLIM_INFINITY else min(hard, highest)
    resource.setrlimit(kind, (min(soft, top), top))


def _read(request: dict[str, Any], limits: CageLimits) -> Iterator[bytes]:
    """The lines of the reply; raises ExtractionFailed for what is known to go wrong with documents."""
    with os.fdopen(0, "rb", closefd=False) as blob:
        data = blob.read()
    content_type = detect(data, request["filename"], request["content_type"])
    # An unknown declared type must not hide a format that the bytes and the name show.
    shown = detect(data, request["filename"])
    readable = shown if find_format(shown) and not find_format(content_type) else content_type
    given = Given(data=data, filename=request["filename"], content_type=readable, limits=limits)
    document = find_reader(readable)(given)
    empty = document.pages_without_text
    if not any(map(str.isalnum, document.text)):
        if empty:
            raise failures.no_text(f"None of the {document.pages} pages holds text; they may be scanned images.")
        raise failures.no_text()
    chunks = chunk_document(document, ChunkingOptions(**request["chunking"]))
    if len(chunks) > limits.chunks:
        raise failures.over_limit(f"The document falls into more than {limits.chunks} pieces.")
    if empty:
        have = f"{pages_named(empty)} {'has' if len(empty) == 1 else 'have'}"
        warning = f"{have} no text and can't be found; scanned images need text recognition first."
        document = replace(document, warnings=(*document.warnings, warning))
    yield from reply_lines(content_type, document, chunks)
