"""The table of errors has every code of the contract with its status, retryability and default message."""

import pytest

from svc_daemon.errors import ERRORS, NotFound, ServiceError, StorageError
from svc_daemon.wire.light.error_codes import ErrorCode
from tests.rules.modules import modules

#: The specification's table with the contract's additions: status, whether a retry can succeed, codes.
TABLE = """
400 no  bucket_required bucket_assignment_failed empty_file url_fetch_blocked invalid_idempotency_key force_required
400 no  metadata_filter_too_large no_updates invalid_agent_profile invalid_request invalid_json checksum_mismatch
400 no  size_mismatch metadata_too_large too_many_tags
401 no  invalid_project_key
402 no  agent_limit_reached
403 no  forbidden_project_key origin_not_allowed model_not_allowed
404 no  bucket_not_found model_not_found agent_not_found not_found source_not_found task_not_found batch_not_found
404 no  session_not_found key_not_found
405 no  method_not_allowed
408 yes request_timeout
409 no  bucket_slug_exists website_url_exists idempotency_key_conflict delete_blocked agent_exists
409 yes request_in_progress team_store_maintenance bucket_store_indexing_pending delete_in_progress blob_not_uploaded
409 yes offset_mismatch
410 no  session_expired session_canceled events_expired
413 no  file_too_large request_too_large
415 no  unsupported_media_type
421 no  host_not_allowed
422 no  url_is_web_page url_is_file
429 no  rag_quota_exceeded
429 yes upload_rate_limited quota_exceeded
431 no  headers_too_large
500 no  internal_error
501 no  extra_not_installed
502 yes url_fetch_failed website_analysis_failed search_failed answer_failed
503 yes search_disabled agent_replay_check_unavailable storage_full shutting_down
504 yes search_timeout answer_timeout
"""


@pytest.mark.rule("error.status")
def test_every_error_code_has_the_status_and_retryability_of_the_contract() -> None:
    rows = [line.split() for line in TABLE.strip().splitlines()]
    expected = {code: (int(status), retryable == "yes") for status, retryable, *codes in rows for code in codes}
    assert {str(code): (rule.status, rule.retryable) for code, rule in ERRORS.items()} == expected
    assert set(ERRORS) == set(ErrorCode)


@pytest.mark.parametrize("code", ErrorCode)
def test_error_has_the_default_message_and_the_retryability_of_its_code(code: ErrorCode) -> None:
    error = ServiceError(code)
    assert error.message == ERRORS[code].sentence
    assert (error.message[0].isupper(), error.message[-1]) == (True, ".")
    assert str(error) == f"{code}: {error.message}"
    stored = ServiceError(code, "Not now.", bytes=3).as_error()
    assert stored == {"code": str(code), "message": "Not now.", "retryable": ERRORS[code].retryable}


def test_an_error_keeps_its_message_and_details() -> None:
    error = ServiceError(ErrorCode.EMPTY_FILE, "a.txt has no bytes.", filename="a.txt")
    assert (error.message, error.details, error.rule.status) == ("a.txt has no bytes.", {"filename": "a.txt"}, 400)
    assert isinstance(NotFound(ErrorCode.SOURCE_NOT_FOUND), ServiceError)
    full = StorageError(errno=28)
    assert (full.code, full.details) == (ErrorCode.STORAGE_FULL, {"errno": 28})


def test_error_truncates_long_messages_and_details() -> None:
    name, code = "x" * 100_000, ErrorCode.BUCKET_NOT_FOUND
    errors = [{"path": f"buckets.{number}", "message": f"there is no {name}."} for number in range(1000)]
    error = ServiceError(code, f"There is no bucket {name!r}; make it.", bucket=name, errors=errors)
    assert (len(error.message), len(error.details["bucket"])) == (600, 600)
    assert (error.message[:20], error.message[-10:]) == ("There is no bucket '", "; make it.")
    assert [each["path"] for each in error.details["errors"]] == [f"buckets.{number}" for number in range(100)]
    assert len(error.details["errors"][0]["message"]) == 600
    kept = ServiceError(code, "y" * 600, bucket="z" * 600)
    assert (kept.message, kept.details) == ("y" * 600, {"bucket": "z" * 600})


def test_only_the_errors_and_exits_modules_spell_out_retryable() -> None:
    spelled = [module.name for module in modules("svc_daemon") if '"retryable":' in module.source]
    # Errors of the operator's command are not in the table.
    assert set(spelled) == {"svc_daemon.errors", "svc_daemon.exits"}
