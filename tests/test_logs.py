"""Log lines: their format, redaction of secrets, and rotation of files."""

import json
import logging
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from svc_daemon.logs import REQUEST_ID, JsonLines, RotatingFile, prepare_handler, redact, start_logging
from tests.limits import limited

TOKEN = "Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmF"  # 43 characters, 256 bits

SECRETS = [
    *(("sk-01k2_s3cr3t-abc", "key sk-01k2_s3cr3t-abc was sent"), ("s3cr3t", "sk-s3cr3t")),
    *(("c2VjcmV0", "secret=whsec_c2VjcmV0+/=="), ("abc.def", "Authorization: Bearer abc.def")),
    *(("dXNlcjpwYXNz", "authorization: Basic dXNlcjpwYXNz"), ("hunter2", "fetched http://user:hunter2@host/path")),
    *(("hunter2", "fetched https://user:p@hunter2@host/path"), ("hunter2", "https://hunter2@host")),
    *((TOKEN, f"PUT /v1/storage/ins_1/{TOKEN} 200"), (TOKEN, f"PUT /upload?upload_id={TOKEN}&x=1")),
    *(("short", "GET /x?token=short&y=1"), ("abc", "GET /x?a=1&signature=abc")),
]

HARMLESS = [
    *("task-force sk", "src_01k2abcdefghjkmnpqrstvwxyz is ready", "GET /v1/buckets/{bucket}/sources 200"),
    *("https://example.org/a@b", "mail to a@example.org"),
    "POST /v1/buckets/{bucket}/uploads/{session_id}/finalize 201",
]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    """The log file, with the root logger at level `info`."""
    root = logging.getLogger()
    level = root.level
    handler = start_logging(tmp_path / "log" / "daemon.log", "info")
    yield handler.path
    root.removeHandler(handler)
    handler.close()
    root.setLevel(level)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_redact_hides_secrets_and_keeps_other_text() -> None:
    for secret, text in SECRETS:
        assert secret not in redact(text), text
        assert "***" in redact(text), text
    for text in HARMLESS:
        assert redact(text) == text


def test_log_line_is_json_with_time_level_logger_message_and_fields(log: Path) -> None:
    logging.getLogger("svc_daemon.some").info("did %s", "it", extra={"fields": {"size_bytes": 3}})
    line = lines(log)[-1]
    assert line.pop("ts").endswith("Z")
    assert line == {"level": "info", "logger": "svc_daemon.some", "message": "did it", "fields": {"size_bytes": 3}}
    # The time is in milliseconds.
    record = logging.makeLogRecord({"created": 1_700_000_000.0076, "msg": "x"})
    assert json.loads(JsonLines().format(record))["ts"] == "2023-11-14T22:13:20.007Z"


def test_log_line_within_a_request_has_the_request_id(log: Path) -> None:
    token = REQUEST_ID.set("req_7")
    try:
        logging.getLogger("svc_daemon").info("within")
    finally:
        REQUEST_ID.reset(token)
    logging.getLogger("svc_daemon").info("without")
    logging.getLogger("svc_daemon").info("given", extra={"request_id": "req_8"})
    assert [line.get("request_id") for line in lines(log)] == ["req_7", None, "req_8"]


def test_messages_fields_and_tracebacks_are_redacted_for_all_loggers_and_handlers(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    handler, alone = logging.StreamHandler(), logging.Logger("alone")
    prepare_handler(handler)
    alone.addHandler(handler)
    for logger in (logging.getLogger("uvicorn.error"), alone):
        logger.warning("started with sk-s3cr3t")
    messages = [json.loads(capsys.readouterr().err)["message"], lines(log)[-1]["message"]]
    assert messages == ["started with sk-***"] * 2
    try:
        int("no sk-s3cr3t here")
    except ValueError:
        logging.getLogger("svc_daemon").exception("with %s", "sk-s3cr3t", extra={"fields": {"url": "http://s3cr3t@h"}})
    text = log.read_text()
    assert "ValueError" in lines(log)[-1]["error"]
    assert "s3cr3t" not in text


def test_debug_lines_and_loggers_that_print_urls_or_tokens_are_not_logged(log: Path) -> None:
    logging.getLogger("httpx").info("GET somewhere")
    logging.getLogger("uvicorn.access").info("GET token")
    logging.getLogger("python_multipart.multipart").warning("odd byte")
    logging.getLogger("svc_daemon").debug("detail")
    assert log.read_text() == ""
    # Only the owner can access the file.
    assert (log.stat().st_mode & 0o777, log.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def emit(handler: RotatingFile, *messages: str) -> None:
    for message in messages:
        handler.emit(logging.makeLogRecord({"msg": message}))


def test_full_log_file_is_rotated_and_the_oldest_is_removed(tmp_path: Path) -> None:
    for start in (0, 35):  # a restarted daemon continues the same file
        handler = RotatingFile(tmp_path / "daemon.log", max_bytes=100, max_files=3)
        emit(handler, *(f"line {number:02}" for number in range(start, 35 if start == 0 else 40)))
        handler.close()
    files = [tmp_path / name for name in ("daemon.log.2", "daemon.log.1", "daemon.log")]
    assert set(tmp_path.iterdir()) == set(files)
    kept = "".join(path.read_text() for path in files).splitlines()
    assert kept == [f"line {number:02}" for number in range(40)][-len(kept) :]
    assert len(kept) > 23
    assert all(path.stat().st_size <= 100 and path.stat().st_mode & 0o777 == 0o600 for path in files)


def test_failed_rotation_loses_no_line_and_keeps_the_file_open(tmp_path: Path) -> None:
    handler = RotatingFile(tmp_path / "daemon.log", max_bytes=200)
    emit(handler, "a" * 150)
    with limited(resource.RLIMIT_NOFILE, 0):
        emit(handler, "b" * 60)
    with (tmp_path / "stranger").open("w") as stranger:
        emit(handler, "c" * 20)
        stranger.write("mine")
    assert (tmp_path / "stranger").read_text() == "mine"
    kept = (tmp_path / "daemon.log").read_text().splitlines()
    assert kept == ["a" * 150, "the log can't be rotated: Too many open files", "b" * 60, "c" * 20]
    emit(handler, "d" * 80)
    handler.close()
    assert (tmp_path / "daemon.log").read_text() == "d" * 80 + "\n"
    assert (tmp_path / "daemon.log.1").read_text().splitlines() == kept


def test_lines_lost_to_a_full_disk_are_counted_and_logged_afterwards(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    handler = RotatingFile(tmp_path / "daemon.log")
    emit(handler, "before")
    with limited(resource.RLIMIT_FSIZE, len("before\nhalf")):
        emit(handler, "half a line", "another", "a third")
    emit(handler, "after", "and on")
    handler.close()
    kept = (tmp_path / "daemon.log").read_text().splitlines()
    assert kept == ["before", "the log could not be written; lines lost: 3", "after", "and on"]
    assert capsys.readouterr() == ("", "")


def test_log_file_that_cannot_be_opened_is_opened_later(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    folder.write_text("in the way")
    handler = RotatingFile(folder / "daemon.log")
    emit(handler, "lost")
    folder.unlink()
    emit(handler, "kept")
    handler.close()
    assert (folder / "daemon.log").read_text().splitlines() == ["the log could not be written; lines lost: 1", "kept"]
