"""Error codes, header names and versions of the contract are unique and well-formed."""

import re

import pytest
from pydantic import TypeAdapter

from svc_daemon.wire import headers
from svc_daemon.wire.error_codes import ErrorCode, SourceErrorCode
from svc_daemon.wire.errors import ErrorEnvelope
from svc_daemon.wire.versions import API_NEWEST, API_OLDEST, API_RANGE, VERSION


def test_error_codes_are_lowercase_words_and_unique_across_both_kinds() -> None:
    codes = [*ErrorCode, *SourceErrorCode]
    assert all(re.fullmatch(r"[a-z]+(_[a-z0-9]+)*", code) for code in codes)
    assert len(set(codes)) == len(codes)
    assert all(code.name.lower() == code.value for code in codes)


@pytest.mark.rule("error.envelope")
def test_error_envelope_is_as_specified() -> None:
    error = {"code": "empty_file", "message": "m", "retryable": False, "details": {"a": 1}}
    envelope = {"error": error, "request_id": "req_1"}
    assert TypeAdapter(ErrorEnvelope).validate_python(envelope, extra="forbid") == envelope


def test_header_names_are_unique() -> None:
    names = [value for name, value in vars(headers).items() if name.isupper()]
    assert len({name.lower() for name in names}) == len(names)
    assert {"Idempotency-Key", "Idempotent-Replayed", "X-Request-Id", "Retry-After"} <= set(names)


def test_version_and_api_range_are_well_formed() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", VERSION)
    assert API_OLDEST <= API_NEWEST
    assert f"{API_OLDEST}-{API_NEWEST}" == API_RANGE
