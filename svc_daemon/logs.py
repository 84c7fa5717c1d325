"""Logs: one JSON object a line, into a file that rotates, readable by its owner alone and without a secret.

A line is `{ts, level, logger, message, request_id?, fields?, error?}`. `logger.info(…, extra={"fields": {…}})` adds
fields; inside a request the id comes by itself, elsewhere `extra={"request_id": …}` gives it. Every handler has the
redaction filter, so that a secret which found its way into a message, a field or a traceback stops there.
"""

import json
import logging
import os
import re
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

#: The request that is being served; empty outside of one.
REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")

MAX_FILE_BYTES = 10 * 1024 * 1024
#: Files in all, the one that is written included.
MAX_FILES = 5

#: Loggers of libraries and the least level that is worth a line: below it they tell each bad body, or whole URLs.
_QUIETED = {
    "httpx": logging.WARNING,
    "httpcore": logging.WARNING,
    "python_multipart": logging.CRITICAL,
    "asyncio": logging.WARNING,
}

_HIDDEN = "***"
#: What must not be written, each with the part of the match that may stay.
_SECRETS = (
    (re.compile(r"\bsk-[A-Za-z0-9_\-]+"), "sk-" + _HIDDEN),
    (re.compile(r"\bwhsec_[A-Za-z0-9+/=_\-]+"), "whsec_" + _HIDDEN),
    (re.compile(r"\b(bearer|basic)\s+[A-Za-z0-9._~+/=\-]+", re.IGNORECASE), r"\1 " + _HIDDEN),
    # Userinfo of a URL, up to the last @ before the path.
    (re.compile(r"(://)[^\s/?#\"'<>]+@"), r"\1" + _HIDDEN + "@"),
    (re.compile(r"([?&](?:token|key|secret|signature|sig)=)[^&\s\"']+", re.IGNORECASE), r"\1" + _HIDDEN),
    # Tokens in paths and queries have 256 bits, 43 characters; ids are shorter.
    (re.compile(r"([/=])[A-Za-z0-9_\-]{40,}"), r"\1" + _HIDDEN),
)


def redact(text: str) -> str:
    """The text with keys, webhook secrets, credentials and tokens replaced by `***`."""
    for pattern, shown in _SECRETS:
        text = pattern.sub(shown, text)
    return text


class Redaction(logging.Filter):
    """Takes secrets out of a record's message, fields and traceback before any formatter sees them."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg = redact(record.getMessage())
        record.args = None
        if record.exc_info and not record.exc_text:
            record.exc_text = redact(_plain.formatException(record.exc_info))
        fields = getattr(record, "fields", None)
        if fields:
            record.fields = {name: _redact_value(value) for name, value in fields.items()}
        return True


def _redact_value(value: Any) -> Any:
    return value if value is None or isinstance(value, int | float) else redact(str(value))


class JsonLines(logging.Formatter):
    """A record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "ts": _timestamp(record.created),
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


def _timestamp(moment: float) -> str:
    """ISO 8601 UTC with milliseconds and `Z`, as everywhere in the contract."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{int(moment % 1 * 1000):03d}Z"


_plain = logging.Formatter()
_encode = json.JSONEncoder(separators=(",", ":"), default=str).encode


class RotatingFile(logging.Handler):
    """Appends lines to a 0600 file; a full one becomes `.1`, that one `.2`, and the oldest goes.

    The standard library's handler formats each record twice and asks the file system four things a line, which would
    cost every request a tenth of its time.
    """

    def __init__(self, path: Path, *, max_bytes: int = MAX_FILE_BYTES, max_files: int = MAX_FILES) -> None:
        super().__init__()
        self.path = path
        self.max_bytes = max_bytes
        self.max_files = max_files
        self.descriptor = -1
        self.size_bytes = 0
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._open()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._append(self.format(record).encode() + b"\n")
        except OSError:
            # A full disk must not fail the request that is being logged.
            self.handleError(record)

    def close(self) -> None:
        self.acquire()
        try:
            if self.descriptor >= 0:
                os.close(self.descriptor)
            self.descriptor = -1
        finally:
            self.release()
        super().close()

    def _append(self, line: bytes) -> None:
        if self.size_bytes and self.size_bytes + len(line) > self.max_bytes:
            self._rotate()
        self.size_bytes += os.write(self.descriptor, line)

    def _rotate(self) -> None:
        os.close(self.descriptor)
        for age in range(self.max_files - 1, 0, -1):
            younger = self._aged(age - 1)
            if younger.exists():
                younger.replace(self._aged(age))
        self._open()

    def _aged(self, age: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{age}") if age else self.path

    def _open(self) -> None:
        self.descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self.size_bytes = os.fstat(self.descriptor).st_size


def start_logging(path: Path, level: str) -> RotatingFile:
    """Sends everything of `level` (`debug`, `info`, `warning`, `error`) and above to the file; returns its handler.

    uvicorn's loggers come along when it is configured with `log_config=None`; its access log, which prints tokens,
    stays off.
    """
    handler = RotatingFile(path)
    prepare_handler(handler)
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(level.upper())
    for name, least in _QUIETED.items():
        logging.getLogger(name).setLevel(least)
    logging.getLogger("uvicorn.access").disabled = True
    return handler


def prepare_handler(handler: logging.Handler) -> None:
    """Gives a handler the format and the redaction; every handler of the daemon needs it."""
    handler.addFilter(Redaction())
    handler.setFormatter(JsonLines())


def stop_logging(handler: logging.Handler) -> None:
    """Takes the handler away again and closes its file."""
    logging.getLogger().removeHandler(handler)
    handler.close()
