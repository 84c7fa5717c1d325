"""Tests that shortages are recognized from an error or its causes."""

import errno
import os
import sqlite3
import threading

import pytest

from svc_daemon.core.resource_shortages import ERRNOS, SENTENCES, Lack, find_lack


def test_the_error_number_shows_the_missing_resource() -> None:
    for number, lack in ERRNOS.items():
        error = OSError(number, os.strerror(number))
        assert find_lack(error) is lack
        try:
            try:
                raise error
            except OSError as cause:
                raise RuntimeError("in other words") from cause
        except RuntimeError as reworded:
            assert find_lack(ExceptionGroup("several", [ValueError("another"), reworded])) is lack


def test_a_full_database_and_exhausted_memory_are_shortages() -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute("PRAGMA max_page_count = 1")
    with pytest.raises(sqlite3.OperationalError) as full:
        connection.execute("CREATE TABLE notes (text TEXT)")
    connection.close()
    assert find_lack(full.value) is Lack.DISK
    with pytest.raises(MemoryError) as memory:
        bytearray(1 << 62)
    assert find_lack(memory.value) is Lack.MEMORY


def test_a_thread_that_can_not_start_is_a_shortage() -> None:
    # Take the message from this interpreter itself.
    before = threading.stack_size(1 << 44)
    try:
        with pytest.raises(RuntimeError) as refused:
            threading.Thread(target=print).start()
    finally:
        threading.stack_size(before)
    assert find_lack(refused.value) is Lack.PROCESSES


def test_an_error_that_is_its_own_cause_ends_the_search() -> None:
    error = ValueError("as a library raises it")
    error.__cause__ = error
    assert find_lack(error) is None


def test_errors_caused_by_a_document_or_a_broken_disk_are_not_shortages() -> None:
    for error in [OSError(errno.EFBIG, "too large"), OSError(errno.EIO, "failed"), ValueError("wrong"), OSError("?")]:
        assert find_lack(error) is None


def test_each_shortage_has_a_sentence() -> None:
    assert set(SENTENCES) == set(Lack)
