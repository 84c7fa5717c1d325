"""The error table: every code of the contract has its row, and the specification's are what it says."""

import pytest

from svc_daemon.errors import ERRORS, NotFound, ServiceError, StorageError
from svc_daemon.wire.codes import ErrorCode
from tests.rules.modules import modules

#: The specification's table, with what the contract adds: code, status, whether a retry can succeed.
TABLE = """
invalid_project_key 401 no
forbidden_project_key 403 no
bucket_required 400 no
bucket_not_found 404 no
bucket_assignment_failed 400 no
bucket_slug_exists 409 no
empty_file 400 no
file_too_large 413 no
url_is_web_page 422 no
url_is_file 422 no
url_fetch_blocked 400 no
url_fetch_failed 502 yes
website_url_exists 409 no
website_analysis_failed 502 yes
idempotency_key_conflict 409 no
invalid_idempotency_key 400 no
request_in_progress 409 yes
team_store_maintenance 409 yes
bucket_store_indexing_pending 409 yes
model_not_found 404 no
agent_not_found 404 no
search_timeout 504 yes
search_failed 502 yes
extra_not_installed 501 no
answer_failed 502 yes
answer_timeout 504 yes
search_disabled 503 yes
delete_blocked 409 no
force_required 400 no
delete_in_progress 409 yes
metadata_filter_too_large 400 no
rag_quota_exceeded 429 no
agent_limit_reached 402 no
no_updates 400 no
invalid_agent_profile 400 no
agent_replay_check_unavailable 503 yes
upload_rate_limited 429 yes
internal_error 500 no
invalid_request 400 no
invalid_json 400 no
checksum_mismatch 400 no
size_mismatch 400 no
metadata_too_large 400 no
too_many_tags 400 no
not_found 404 no
source_not_found 404 no
task_not_found 404 no
batch_not_found 404 no
session_not_found 404 no
key_not_found 404 no
origin_not_allowed 403 no
model_not_allowed 403 no
method_not_allowed 405 no
blob_not_uploaded 409 yes
offset_mismatch 409 yes
session_expired 410 no
session_canceled 410 no
request_timeout 408 yes
host_not_allowed 421 no
headers_too_large 431 no
agent_exists 409 no
request_too_large 413 no
unsupported_media_type 415 no
quota_exceeded 429 yes
storage_full 503 yes
shutting_down 503 yes
"""


def test_every_code_has_the_status_and_retryability_of_the_contract() -> None:
    rows = [line.split() for line in TABLE.strip().splitlines()]
    expected = {code: (int(status), retryable == "yes") for code, status, retryable in rows}
    assert {str(code): (rule.status, rule.retryable) for code, rule in ERRORS.items()} == expected


def test_every_code_has_a_row_and_every_row_a_code() -> None:
    assert set(ERRORS) == set(ErrorCode)


@pytest.mark.parametrize("code", ErrorCode)
def test_a_code_without_a_message_says_its_sentence(code: ErrorCode) -> None:
    error = ServiceError(code)
    assert error.message == ERRORS[code].sentence
    assert error.message.endswith(".")
    assert error.message[0].isupper()
    assert str(error) == f"{code}: {error.message}"


def test_an_error_keeps_its_message_and_details() -> None:
    error = ServiceError(ErrorCode.EMPTY_FILE, "a.txt has no bytes.", filename="a.txt")
    assert (error.message, error.details, error.rule.status) == ("a.txt has no bytes.", {"filename": "a.txt"}, 400)


def test_an_error_repeats_only_so_much_of_what_was_sent() -> None:
    name = "x" * 100_000
    errors = [{"path": f"buckets.{number}", "message": f"there is no {name}."} for number in range(1000)]
    error = ServiceError(
        ErrorCode.BUCKET_NOT_FOUND, f"There is no bucket {name!r}; make it.", bucket=name, errors=errors
    )
    assert (len(error.message), len(error.details["bucket"])) == (600, 600)
    assert (error.message[:20], error.message[-10:]) == ("There is no bucket '", "; make it.")
    assert [each["path"] for each in error.details["errors"]] == [f"buckets.{number}" for number in range(100)]
    assert len(error.details["errors"][0]["message"]) == 600
    kept = ServiceError(ErrorCode.BUCKET_NOT_FOUND, "y" * 600, bucket="z" * 600)
    assert (kept.message, kept.details) == ("y" * 600, {"bucket": "z" * 600})


@pytest.mark.parametrize("code", ErrorCode)
def test_what_is_stored_of_an_error_is_as_retryable_as_the_table_says(code: ErrorCode) -> None:
    stored = ServiceError(code, "Not now.", bytes=3).as_error()
    assert stored == {"code": str(code), "message": "Not now.", "retryable": ERRORS[code].retryable}


def test_nobody_spells_a_stored_error_by_hand() -> None:
    spelled = [module.name for module in modules("svc_daemon") if '"retryable":' in module.source]
    # The operator's command has errors that no table knows.
    assert set(spelled) == {"svc_daemon.errors", "svc_daemon.exits"}


def test_a_code_that_is_not_in_the_table_cannot_be_raised() -> None:
    with pytest.raises(KeyError):
        ServiceError("made_up")  # type: ignore[arg-type]


def test_a_disk_that_refuses_is_storage_full_and_can_be_tried_again() -> None:
    error = StorageError(errno=28)
    assert (error.code, error.rule.status, error.rule.retryable) == (ErrorCode.STORAGE_FULL, 503, True)
    assert error.details == {"errno": 28}


def test_not_found_is_told_like_any_other_error() -> None:
    assert isinstance(NotFound(ErrorCode.SOURCE_NOT_FOUND), ServiceError)
