"""Which source is meant by what somebody types."""

from pathlib import Path
from typing import Any

import pytest

from svc_cli.commands.names import whole_id
from svc_cli.errors import UsageError
from tests.cli.consoles import RunSvc
from tests.cli.odd_servers import OddServer


@pytest.fixture
def here(here: RunSvc) -> RunSvc:
    """`svc` at the shared installation, with `docs/leave.md` in the buckets `handbook` and `second`."""
    Path("docs").mkdir()
    Path("docs/leave.md").write_text("The cobalt rule grants ninety days.\n")
    Path("pay.md").write_text("The umber rule.\n")
    assert here("upload", "docs/leave.md", "pay.md", "-b", "handbook").exit == 0
    assert here("upload", "docs/leave.md", "-b", "second").exit == 0
    return here


def _ids(here: RunSvc, bucket: str) -> dict[str, str]:
    return {each["title"]: each["id"] for each in here("source", "ls", "-b", bucket, "--json").json["sources"]}


def test_a_source_is_named_by_title_file_name_or_the_start_of_its_id(
    here: RunSvc, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = _ids(here, "handbook")
    leave, pay = ids["docs/leave.md"], ids["pay.md"]
    for name, meant in (("docs/leave.md", leave), ("leave.md", leave), ("pay.md", pay), (leave[:-3], leave)):
        assert here("source", "show", name, "-b", "handbook", "--json").json["id"] == meant
    assert here("source", "show", "pay.md", "--json").json["id"] == pay
    monkeypatch.setenv("SVC_BUCKET", "second")
    assert here("source", "show", "leave.md", "--json").json["id"] == _ids(here, "second")["docs/leave.md"]


def test_every_command_takes_the_same_names(here: RunSvc) -> None:
    dry = [("source", verb, "--dry-run") for verb in ("retry", "refresh", "detach", "rm")]
    for words in (("source", "text"), ("source", "get"), *dry, ("status",), ("wait",)):
        finished = here(*words, "leave.md", "-b", "handbook")
        assert (finished.exit, finished.stdout != "") == (0, True), words
    assert here("bucket", "create", "third").exit == 0
    attached = here("source", "attach", "pay.md", "-b", "third", "--json")
    assert attached.json["id"] == _ids(here, "handbook")["pay.md"]


def test_several_matches_are_listed(here: RunSvc) -> None:
    refused = here("source", "show", "leave.md", "--json")
    error = refused.json["error"]
    both = {_ids(here, bucket)["docs/leave.md"] for bucket in ("handbook", "second")}
    assert (refused.failure, set(error["details"]["source_ids"])) == ((2, "svc_source_ambiguous"), both)
    assert all(each in error["hint"] for each in both)
    assert here("status", "src_0").exit == 2


def test_a_misspelled_source_or_bucket_is_suggested(here: RunSvc) -> None:
    missing = here("source", "show", "leaf.md", "-b", "handbook", "--json")
    assert missing.failure == (5, "source_not_found")
    assert "did you mean 'leave.md'?" in missing.json["error"]["hint"]
    for words in ("source ls -b", "search cobalt -b", "upload pay.md --no-create -b", "bucket show", "status -b"):
        missing = here(*words.split(), "handbok", "--json")
        assert missing.failure == (5, "bucket_not_found"), words
        assert "did you mean 'handbook'?" in missing.json["error"]["hint"], words
    assert "did you mean" not in here("bucket", "show", "xyz", "--json").json["error"]["hint"]


def test_the_start_of_an_id_is_completed_to_the_only_one() -> None:
    assert whole_id("key_1", ["key_12", "key_2"]) == "key_12"
    assert whole_id("key_3", ["key_12", "key_2"]) == "key_3"
    with pytest.raises(UsageError, match="2 ids start with 'key_'"):
        whole_id("key_", ["key_12", "key_2"])


def test_a_whole_id_is_not_looked_up(at_odd: RunSvc, odd: OddServer) -> None:
    whole = "src_01m81nywyax2k70ggze3mxk36g"
    answer: dict[str, Any] = {"error": {"code": "source_not_found", "message": "gone", "retryable": False}}
    odd.answers[f"GET /v1/sources/{whole}"] = (404, answer, {})
    assert at_odd("source", "show", whole).exit == 5
    assert [path for _, path, _ in odd.requests if path.startswith("/v1")] == [f"/v1/sources/{whole}"]
