"""The table of exit codes."""

import pytest

from svc_cli.errors import ApiError, SvcError, UsageError
from svc_cli.exits import Exit, exit_for_answer


@pytest.mark.parametrize(
    ("status", "code", "retryable", "expected"),
    [
        (400, "empty_file", False, Exit.FAILED),
        (413, "file_too_large", False, Exit.FAILED),
        (422, "url_is_file", False, Exit.FAILED),
        (402, "agent_limit_reached", False, Exit.FAILED),
        (405, "method_not_allowed", False, Exit.FAILED),
        (401, "invalid_project_key", False, Exit.DENIED),
        (403, "forbidden_project_key", False, Exit.DENIED),
        (404, "bucket_not_found", False, Exit.MISSING),
        (404, "source_not_found", False, Exit.MISSING),
        (409, "idempotency_key_conflict", False, Exit.CONFLICT),
        (409, "delete_blocked", False, Exit.CONFLICT),
        (400, "force_required", False, Exit.CONFLICT),
        (409, "bucket_slug_exists", False, Exit.CONFLICT),
        (409, "website_url_exists", False, Exit.CONFLICT),
        (409, "bucket_store_indexing_pending", True, Exit.TEMPORARY),
        (429, "upload_rate_limited", True, Exit.TEMPORARY),
        (429, "rag_quota_exceeded", False, Exit.TEMPORARY),
        (500, "internal_error", False, Exit.TEMPORARY),
        (503, "storage_full", True, Exit.TEMPORARY),
        (504, "search_timeout", True, Exit.TEMPORARY),
        (408, "request_timeout", True, Exit.TEMPORARY),
    ],
)
def test_each_answer_has_the_exit_code_of_the_table(status: int, code: str, retryable: bool, expected: Exit) -> None:
    assert exit_for_answer(status, code, retryable) is expected
    error = ApiError(status, {"code": code, "message": "m", "retryable": retryable}, "req_1")
    assert error.exit is expected
    assert error.envelope()["exit_code"] == int(expected)


def test_an_envelope_has_the_fields_of_the_contract() -> None:
    envelope = UsageError("wrong", hint="do this", details={"flag": "-b"}).envelope()
    assert set(envelope) == {"error", "request_id", "exit_code"}
    assert envelope["error"] == {
        "code": "svc_usage",
        "message": "wrong",
        "retryable": False,
        "details": {"flag": "-b"},
        "hint": "do this",
    }


def test_codes_of_the_client_start_with_svc() -> None:
    kinds: list[type[SvcError]] = [SvcError, *SvcError.__subclasses__()]
    assert [kind.code for kind in kinds if kind is not ApiError and not kind.code.startswith("svc_")] == []


def test_an_answer_without_an_envelope_is_still_an_error_of_ours() -> None:
    assert ApiError(502, {}).code == "svc_bad_answer"
