"""`svc agent …` and `svc search --agent` against a real daemon."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from svc_cli.commands.options import model_id
from tests.acceptance.installations import Installation
from tests.cli.consoles import RunSvc


@pytest.fixture
def here(svc: RunSvc, at: Callable[[Installation], None], shared_installation: Installation) -> RunSvc:
    """`svc` at the shared installation, which has the buckets `handbook` and `prices`."""
    at(shared_installation)
    for bucket in ("handbook", "prices"):
        assert svc("bucket", "create", bucket).exit == 0
    return svc


def show(here: RunSvc, agent_id: str) -> dict[str, Any]:
    return dict(here("agent", "show", agent_id, "--json").json)


def test_an_agent_is_made_shown_changed_and_deleted(here: RunSvc) -> None:
    before = [agent["id"] for agent in here("agent", "ls", "--json").json["agents"]]
    assert "default" in before
    made = here("agent", "create", "sales", "--name", "Sales", "--role", "seller", "-b", "prices", "-b", "handbook")
    assert (made.exit, made.stdout) == (0, "created svc-agent:sales, which searches 2 buckets\n")
    shown = show(here, "sales")
    assert (shown["name"], shown["role"], len(shown["policy"]["bucket_ids"])) == ("Sales", "seller", 2)
    words = here("agent", "show", "sales").stdout
    assert "svc-agent:sales" in words
    assert all(bucket_id in words for bucket_id in shown["policy"]["bucket_ids"])
    changed = here(
        "agent", "set", "sales", "--scope", "team", "--top-k", "4", "--threshold", "0.5", "--surface", "widget"
    )
    assert (changed.exit, changed.stdout) == (0, "changed svc-agent:sales, which searches the whole team\n")
    policy = show(here, "sales")["policy"]
    assert (policy["scope"], policy["top_k"], policy["score_threshold"]) == ("team", 4, 0.5)
    assert "sales" in here("agent", "ls").stdout
    unasked = here("agent", "rm", "sales", "--json")
    assert (unasked.exit, unasked.json["error"]["code"]) == (2, "svc_usage")
    assert "--force" in unasked.json["error"]["hint"]
    assert here("agent", "rm", "sales", "--force").stdout == "deleted sales\n"
    assert [agent["id"] for agent in here("agent", "ls", "--json").json["agents"]] == before


def test_dry_runs_change_nothing(here: RunSvc) -> None:
    before = here("agent", "ls", "--json").json["agents"]
    would = here("agent", "create", "ghost", "-b", "prices", "--dry-run")
    assert (would.exit, would.stdout) == (0, "would create svc-agent:ghost, which searches 1 bucket\n")
    assert here("agent", "create", "ghost", "--dry-run", "--json").json["dry_run"] is True
    told = here("agent", "set", "default", "--role", "x", "--dry-run", "--json").json
    assert (told["dry_run"], told["changes"]) == (True, {"role": "x"})
    assert here("agent", "rm", "default", "--dry-run").exit == 0
    assert here("agent", "ls", "--json").json["agents"] == before


def test_numbers_of_a_policy_can_be_taken_away(here: RunSvc) -> None:
    assert here("agent", "create", "few", "--top-k", "4", "--threshold", "0.5").exit == 0
    assert here("agent", "set", "few", "--top-k", "none").exit == 0
    assert (show(here, "few")["policy"]["top_k"], show(here, "few")["policy"]["score_threshold"]) == (None, 0.5)
    assert here("agent", "set", "few", "--threshold", "none").exit == 0
    assert show(here, "few")["policy"]["score_threshold"] is None
    assert here("agent", "rm", "few", "--force").exit == 0


def test_filters_are_json(here: RunSvc) -> None:
    filters = '{"type": "eq", "key": "lang", "value": "en"}'
    assert here("agent", "create", "english", "--filters", filters).exit == 0
    assert show(here, "english")["policy"]["filters"] == {"type": "eq", "key": "lang", "value": "en"}
    assert here("agent", "set", "english", "--filters", "{}").exit == 0
    assert show(here, "english")["policy"]["filters"] is None
    assert here("agent", "rm", "english", "--force").exit == 0


def test_a_search_goes_by_the_agent_that_is_named(
    here: RunSvc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for bucket in ("handbook", "prices"):
        file = tmp_path / f"{bucket}.txt"
        file.write_text(f"The umber quay, as the {bucket} has it.\n")
        assert here("upload", str(file), "-b", bucket).exit == 0
    assert here("agent", "create", "seller", "-b", "prices").exit == 0
    for agent in ("seller", "svc-agent:seller", "svc-rag-agent:seller"):
        page = here("search", "umber", "--agent", agent, "--json").json
        assert [result["filename"] for result in page["data"]] == ["prices.txt"]
    assert here("agent", "set", "seller", "-b", "prices", "-b", "handbook", "--top-k", "1").exit == 0
    for words, results in ((), 1), (("-k", "2"), 2):
        assert len(here("search", "umber", "--agent", "seller", "--json", *words).json["data"]) == results
    assert here("agent", "set", "seller", "-b", "prices").exit == 0
    monkeypatch.setenv("SVC_BUCKET", "handbook")
    assert len(here("search", "umber", "--agent", "seller", "--json").json["data"]) == 1
    left_out = here("search", "umber", "--agent", "seller", "-b", "handbook")
    assert (left_out.exit, left_out.stdout) == (0, "nothing found.\n")
    assert "does not search the bucket 'handbook'" in left_out.stderr
    source_id = page["data"][0]["source_id"]
    assert here("agent", "set", "seller", "--source", source_id).exit == 0
    unasked = here("source", "rm", source_id, "--json")
    assert (unasked.exit, unasked.json["error"]["code"]) == (2, "svc_usage")
    assert here("source", "rm", source_id, "--force").exit == 0


@pytest.mark.parametrize(
    ("words", "exit", "code"),
    [
        (("create", "default"), 6, "agent_exists"),
        (("create", "x y"), 3, "invalid_agent_profile"),
        (("create", "x", "-b", "nowhere"), 3, "invalid_agent_profile"),
        (("create", "x", "--scope", "all"), 2, "svc_usage"),
        (("create", "x", "--filters", "{"), 2, "svc_usage"),
        (("create", "x", "--top-k", "51"), 3, "invalid_agent_profile"),
        (("create", "x", "--top-k", "few"), 2, "svc_usage"),
        (("create", "x", "--threshold", "nan"), 2, "svc_usage"),
        (("set", "nobody", "--role", "x"), 5, "agent_not_found"),
        (("set", "default"), 2, "svc_usage"),
        (("show", "nobody"), 5, "agent_not_found"),
        (("rm", "default", "--force"), 3, "invalid_request"),
        (("rm", "a/b"), 2, "svc_usage"),
    ],
)
def test_a_refusal_is_one_json_value_with_its_exit_code(
    here: RunSvc, words: tuple[str, ...], exit: int, code: str
) -> None:
    finished = here("agent", *words, "--json")
    assert (finished.exit, finished.json["error"]["code"]) == (exit, code)


@pytest.mark.parametrize(
    ("agent", "model"),
    [
        ("default", "svc-agent"),
        ("sales", "svc-agent:sales"),
        ("svc-agent", "svc-agent"),
        ("svc-rag-agent", "svc-rag-agent"),
        ("svc-rag-agent:sales", "svc-rag-agent:sales"),
        ("svc-agents", "svc-agent:svc-agents"),
    ],
)
def test_an_agent_is_named_by_its_id_or_by_its_model_id(agent: str, model: str) -> None:
    assert model_id(agent) == model
