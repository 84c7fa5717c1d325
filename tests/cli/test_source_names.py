"""Which source is meant by what somebody types."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from svc_cli.commands.names import whole_id
from svc_cli.errors import UsageError
from tests.acceptance.installations import Installation
from tests.cli.consoles import RunSvc
from tests.cli.odd_servers import OddServer


@pytest.fixture
def here(svc: RunSvc, at: Callable[[Installation], None], shared_installation: Installation) -> RunSvc:
    """`svc` at the shared installation, with `docs/leave.md` in two buckets' worth of versions."""
    at(shared_installation)
    Path("docs").mkdir()
    Path("docs/leave.md").write_text("The cobalt rule grants ninety days.\n")
    Path("pay.md").write_text("The umber rule.\n")
    assert svc("upload", "docs/leave.md", "pay.md", "-b", "handbook").exit == 0
    assert svc("upload", "docs/leave.md", "-b", "second").exit == 0
    return svc


def _ids(here: RunSvc, bucket: str) -> dict[str, str]:
    return {each["title"]: each["id"] for each in here("source", "ls", "-b", bucket, "--json").json["sources"]}


def test_a_source_is_named_by_title_file_name_or_the_start_of_its_id(here: RunSvc) -> None:
    ids = _ids(here, "handbook")
    leave, pay = ids["docs/leave.md"], ids["pay.md"]
    for name, meant in (("docs/leave.md", leave), ("leave.md", leave), ("pay.md", pay), (leave[:-3], leave)):
        assert here("source", "show", name, "-b", "handbook", "--json").json["id"] == meant
    assert here("source", "show", "pay.md", "--json").json["id"] == pay


@pytest.mark.parametrize(
    "words",
    [
        ("source", "text"),
        ("source", "get"),
        ("source", "retry", "--dry-run"),
        ("source", "refresh", "--dry-run"),
        ("source", "detach", "--dry-run"),
        ("source", "rm", "--dry-run"),
        ("status",),
        ("wait",),
    ],
)
def test_every_command_takes_the_same_names(here: RunSvc, words: tuple[str, ...]) -> None:
    finished = here(*words, "leave.md", "-b", "handbook")
    assert finished.exit == 0, finished.stderr
    assert finished.stdout


def test_a_source_is_attached_to_another_bucket_by_its_title(here: RunSvc) -> None:
    assert here("bucket", "create", "third").exit == 0
    attached = here("source", "attach", "pay.md", "-b", "third", "--json")
    assert attached.json["id"] == _ids(here, "handbook")["pay.md"]


def test_several_matches_are_listed(here: RunSvc) -> None:
    refused = here("source", "show", "leave.md", "--json")
    error = refused.json["error"]
    both = {_ids(here, bucket)["docs/leave.md"] for bucket in ("handbook", "second")}
    assert (refused.exit, error["code"], set(error["details"]["source_ids"])) == (2, "svc_source_ambiguous", both)
    assert all(each in error["hint"] for each in both)
    assert here("status", "src_0").exit == 2


def test_a_bucket_of_the_settings_decides_where_the_name_is_looked_up(
    here: RunSvc, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SVC_BUCKET", "second")
    assert here("source", "show", "leave.md", "--json").json["id"] == _ids(here, "second")["docs/leave.md"]


def test_a_misspelled_source_or_bucket_is_suggested(here: RunSvc) -> None:
    missing = here("source", "show", "leaf.md", "-b", "handbook", "--json")
    assert (missing.exit, missing.json["error"]["code"]) == (5, "source_not_found")
    assert "did you mean 'leave.md'?" in missing.json["error"]["hint"]
    for words in (
        ("source", "ls", "-b"),
        ("search", "cobalt", "-b"),
        ("upload", "pay.md", "--no-create", "-b"),
        ("bucket", "show"),
        ("status", "-b"),
    ):
        missing = here(*words, "handbok", "--json")
        assert (missing.exit, missing.json["error"]["code"]) == (5, "bucket_not_found")
        assert "did you mean 'handbook'?" in missing.json["error"]["hint"]
    assert "did you mean" not in here("bucket", "show", "xyz", "--json").json["error"]["hint"]


def test_the_start_of_an_id_stands_for_the_only_one() -> None:
    assert whole_id("key_1", ["key_12", "key_2"]) == "key_12"
    assert whole_id("key_3", ["key_12", "key_2"]) == "key_3"
    with pytest.raises(UsageError, match="2 ids start with 'key_'"):
        whole_id("key_", ["key_12", "key_2"])


def test_a_whole_id_is_not_looked_up(svc: RunSvc, odd: OddServer, monkeypatch: pytest.MonkeyPatch) -> None:
    odd.answer_health()
    monkeypatch.setenv("SVC_API_KEY", "sk-odd")
    whole = "src_01m81nywyax2k70ggze3mxk36g"
    answer: dict[str, Any] = {"error": {"code": "source_not_found", "message": "gone", "retryable": False}}
    odd.answers[f"GET /v1/sources/{whole}"] = (404, answer, {})
    assert svc("source", "show", whole, "--base-url", odd.url).exit == 5
    assert [path for _, path, _ in odd.requests if path.startswith("/v1")] == [f"/v1/sources/{whole}"]
