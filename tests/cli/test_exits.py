"""The table of exit codes."""

from svc_cli.errors import ApiError, SvcError, UsageError
from svc_cli.exits import Exit, exit_for_answer

#: Answers that are not retryable, each with its status and code, by the exit code that they have.
ANSWERS = {
    Exit.FAILED: [
        "400 empty_file",
        "413 file_too_large",
        "422 url_is_file",
        "402 agent_limit_reached",
        "405 method_not_allowed",
    ],
    Exit.DENIED: ["401 invalid_project_key", "403 forbidden_project_key"],
    Exit.MISSING: ["404 bucket_not_found", "404 source_not_found"],
    Exit.CONFLICT: [
        "409 idempotency_key_conflict",
        "409 delete_blocked",
        "400 force_required",
        "409 bucket_slug_exists",
        "409 website_url_exists",
    ],
    Exit.TEMPORARY: ["429 rag_quota_exceeded", "500 internal_error"],
}
RETRYABLE = [
    "409 bucket_store_indexing_pending",
    "429 upload_rate_limited",
    "503 storage_full",
    "504 search_timeout",
    "408 request_timeout",
]


def test_each_answer_has_the_exit_code_of_the_table() -> None:
    rows = [(each, False, expected) for expected, answers in ANSWERS.items() for each in answers]
    for answer, retryable, expected in [*rows, *((each, True, Exit.TEMPORARY) for each in RETRYABLE)]:
        status, code = int(answer[:3]), answer[4:]
        error = ApiError(status, {"code": code, "message": "m", "retryable": retryable}, "req_1")
        found = (exit_for_answer(status, code, retryable), error.exit, error.envelope()["exit_code"])
        assert found == (expected, expected, int(expected)), answer


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
