"""Logging: one JSON object per line, in a rotating private file, with secrets redacted.

A line is `{ts, level, logger, message, request_id?, fields?, error?}`. A log call's `extra` may contain `fields` and,
outside of a request, `request_id`.
"""

import errno
import json
import logging
import os
import re
import stat
from contextlib import suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from svc_daemon.paths import open_own

#: Id of the current request; empty if there is none.
REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")

MAX_FILE_BYTES = 10 * 1024 * 1024
#: Maximum number of log files, including the current one.
MAX_FILES = 5

#: Below these levels, libraries log every malformed body, or whole URLs.
_QUIETED = {
    "httpx": logging.WARNING,
    "httpcore": logging.WARNING,
    "python_multipart": logging.CRITICAL,
    "asyncio": logging.WARNING,
    "mcp": logging.WARNING,
}

#: Each alternative matches a prefix to keep, then a secret. One case-sensitive expression is three times as fast as
#: several.
_SECRETS = re.compile(
    r"""
      (sk-)(?<!\wsk-)[\w\-]+                                               # API keys, but no "task-force"
    | (whsec_)[\w+/=\-]+                                                   # webhook secrets
    | ([Bb]earer\s+|[Bb]asic\s+|BEARER\s+|BASIC\s+)[\w.~+/=\-]+           # credentials of a header
    | (://)[^\s/?\#"'<>]+(?=@)                                             # userinfo of a URL
    | ([?&](?:token|key|secret|signature|sig)=)[^&\s"']+                   # secrets in a query
    | ([/=])[\w\-]{40,}                                                    # tokens of 256 bits; ids are shorter
    """,
    re.ASCII | re.VERBOSE,
)


def redact(text: str) -> str:
    """Replace API keys, webhook secrets, credentials and tokens in the text with `***`."""
    # Most texts are short and contain no secret. This test takes a tenth of the time that the regular expression takes.
    if len(text) <= 40 and not ("sk-" in text or "sec_" in text or " " in text or ":" in text or "=" in text):
        return text
    return _SECRETS.sub(lambda found: f"{found[found.lastindex or 0]}***", text)


class Redaction(logging.Filter):
    """Removes secrets from a record's message, fields and traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg = redact(record.getMessage())
        record.args = None
        if record.exc_info:
            # Another handler may have cached the traceback in `exc_text`.
            record.exc_text = redact(record.exc_text or _plain.formatException(record.exc_info))
        fields = getattr(record, "fields", None)
        if fields:
            record.fields = {
                name: value if value is None or isinstance(value, _NUMBERS) else redact(str(value))
                for name, value in fields.items()
            }
        return True


_NUMBERS = (int, float)


class JsonLines(logging.Formatter):
    """Formats a record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        moment = record.created
        line: dict[str, Any] = {
            # ISO 8601 UTC, as everywhere in the API.
            "ts": f"{_second(int(moment))}.{int(moment % 1 * 1000):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        request_id = getattr(record, "request_id", "") or REQUEST_ID.get()
        if request_id:
            line["request_id"] = request_id
        fields = getattr(record, "fields", None)
        if fields:
            line["fields"] = fields
        if record.exc_text:
            line["error"] = record.exc_text
        return _encode(line)


@lru_cache(maxsize=2)
def _second(moment: int) -> str:
    """Format a timestamp to the second. Results are cached, because many lines have the same second."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%S")


_plain = logging.Formatter()
_encode = json.JSONEncoder(separators=(",", ":"), default=str).encode


class RotatingFile(logging.Handler):
    """Appends lines to a file with mode 0600; a full file is renamed to `.1`, `.1` to `.2`, and the oldest is deleted.

    A line that can't be written is dropped; the next line reports how many lines were lost. If no new file can be
    created, the full file stays in use. The standard library's handler would make every request take a tenth longer.
    """

    def __init__(self, path: Path, *, max_bytes: int = MAX_FILE_BYTES, max_files: int = MAX_FILES) -> None:
        super().__init__()
        self.path = path
        self.max_bytes = max_bytes
        self.max_files = max_files
        #: The open file's descriptor, or -1.
        self.descriptor = -1
        self.size_bytes = 0
        #: Lines lost since the last successful write.
        self.lost_lines = 0
        with suppress(OSError):
            self._open()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            if self.descriptor < 0:
                self._open()
            if self.lost_lines:
                self._append(self._notice(f"the log could not be written; lines lost: {self.lost_lines}"))
                self.lost_lines = 0
            self._append(self._line(record))
        except OSError:
            self.lost_lines += 1

    def close(self) -> None:
        self.acquire()
        try:
            descriptor, self.descriptor = self.descriptor, -1
            if descriptor >= 0:
                os.close(descriptor)
        finally:
            self.release()
        super().close()

    def _line(self, record: logging.LogRecord) -> bytes:
        return self.format(record).encode() + b"\n"

    def _notice(self, message: str) -> bytes:
        """Format a warning about the log itself."""
        return self._line(logging.LogRecord(__name__, logging.WARNING, __file__, 0, message, None, None))

    def _append(self, line: bytes) -> None:
        if self.size_bytes and self.size_bytes + len(line) > self.max_bytes:
            try:
                self._rotate()
            except OSError as error:
                # Don't rotate again at every line: each attempt would rename the old files once more.
                self.size_bytes = 0
                line = self._notice(f"the log can't be rotated: {error.strerror}") + line
        written_bytes = os.write(self.descriptor, line)
        if written_bytes < len(line):
            # The disk is full. A partial line would corrupt the next one.
            os.ftruncate(self.descriptor, os.fstat(self.descriptor).st_size - written_bytes)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.size_bytes += written_bytes

    def _rotate(self) -> None:
        """Switch to a new file. If that fails, the old file stays in use."""
        fresh_path = self.path.with_name(f"{self.path.name}.new")
        fresh = _open_log(fresh_path)
        try:
            for age in range(self.max_files - 1, 0, -1):
                younger = self._aged(age - 1)
                if younger.exists():
                    younger.replace(self._aged(age))
            fresh_path.replace(self.path)
        except OSError:
            os.close(fresh)
            raise
        old, self.descriptor = self.descriptor, fresh
        self.size_bytes = 0
        os.close(old)

    def _aged(self, age: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{age}") if age else self.path

    def _open(self) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.descriptor = _open_log(self.path)
        self.size_bytes = os.fstat(self.descriptor).st_size


def _open_log(path: Path) -> int:
    return open_own(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def start_logging(path: Path, level: str) -> RotatingFile:
    """Log messages of `level` (`debug`, `info`, `warning`, `error`) and above to the file. Returns the handler.

    Raises OSError if the file is a link, which may lead to a file of others.
    uvicorn's access log stays off, because it contains tokens.
    """
    with suppress(FileNotFoundError):
        if stat.S_ISLNK((found := path.lstat()).st_mode) or not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
            open_own(path, os.O_RDONLY)
    handler = RotatingFile(path)
    prepare_handler(handler)
    root = logging.getLogger()
    # The log lines contain neither thread nor process, so `logging` doesn't have to look them up.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    root.addHandler(handler)
    root.setLevel(level.upper())
    for name, least in _QUIETED.items():
        logging.getLogger(name).setLevel(least)
    logging.getLogger("uvicorn.access").disabled = True
    return handler


def prepare_handler(handler: logging.Handler) -> None:
    """Set the format and the redaction, which every handler of the daemon needs."""
    handler.addFilter(Redaction())
    handler.setFormatter(JsonLines())
