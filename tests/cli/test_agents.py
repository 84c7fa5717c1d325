"""`svc agent …` and `svc search --agent` against a real daemon."""

import shlex
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from svc_cli.commands.invocations import model_id
from tests.acceptance.installations import Installation
from tests.cli.terminals import RunSvc


@pytest.fixture
def here(here: RunSvc) -> RunSvc:
    """`svc` at the shared installation, which has the buckets `handbook` and `prices`."""
    assert [here("bucket", "create", bucket).exit for bucket in ("handbook", "prices")] == [0, 0]
    return here


def policy_of(here: RunSvc, agent_id: str) -> dict[str, Any]:
    return dict(here("agent", "show", agent_id, "--json").json["policy"])


def test_agent_commands_create_show_change_and_delete_an_agent(here: RunSvc) -> None:
    before = [agent["id"] for agent in here("agent", "ls", "--json").json["agents"]]
    assert "default" in before
    made = here("agent", "create", "sales", "--name", "Sales", "--role", "seller", "-b", "prices", "-b", "handbook")
    assert made.exit == 0
    assert made.stdout == "created svc-agent:sales, which searches 2 buckets\n"
    shown, text = here("agent", "show", "sales", "--json").json, here("agent", "show", "sales").stdout
    assert shown["name"] == "Sales"
    assert shown["role"] == "seller"
    assert len(shown["policy"]["bucket_ids"]) == 2
    assert [each for each in ("svc-agent:sales", *shown["policy"]["bucket_ids"]) if each not in text] == []
    changed = here("agent", "set", "sales", *shlex.split("--scope team --top-k 4 --threshold 0.5 --surface widget"))
    assert changed.exit == 0
    assert changed.stdout == "changed svc-agent:sales, which searches the whole team\n"
    policy = policy_of(here, "sales")
    assert policy["scope"] == "team"
    assert policy["top_k"] == 4
    assert policy["score_threshold"] == 0.5
    assert "sales" in here("agent", "ls").stdout
    refused = here("agent", "rm", "sales", "--json")
    assert refused.failure == (2, "svc_usage")
    assert "--force" in refused.json["error"]["hint"]
    assert here("agent", "rm", "sales", "--force").stdout == "deleted sales\n"
    assert [agent["id"] for agent in here("agent", "ls", "--json").json["agents"]] == before


def test_dry_runs_change_nothing(here: RunSvc) -> None:
    before = here("agent", "ls", "--json").json["agents"]
    would = here("agent", "create", "ghost", "-b", "prices", "--dry-run")
    assert would.exit == 0
    assert would.stdout == "would create svc-agent:ghost, which searches 1 bucket\n"
    assert here("agent", "create", "ghost", "--dry-run", "--json").json["dry_run"] is True
    changed = here("agent", "set", "default", "--role", "x", "--dry-run", "--json").json
    assert changed["dry_run"] is True
    assert changed["changes"] == {"role": "x"}
    assert here("agent", "rm", "default", "--dry-run").exit == 0
    assert here("agent", "ls", "--json").json["agents"] == before


def test_agent_set_clears_numbers_and_filters_of_the_policy(here: RunSvc) -> None:
    given = {"top_k": 4, "score_threshold": 0.5, "filters": {"type": "eq", "key": "lang", "value": "en"}}
    filters = '{"type": "eq", "key": "lang", "value": "en"}'
    assert here("agent", "create", "few", "--top-k", "4", "--threshold", "0.5", "--filters", filters).exit == 0
    assert given.items() <= policy_of(here, "few").items()
    for flag, name in (("--top-k none", "top_k"), ("--threshold none", "score_threshold"), ("--filters {}", "filters")):
        given[name] = None
        assert here("agent", "set", "few", *flag.split()).exit == 0
        assert given.items() <= policy_of(here, "few").items(), flag
    assert here("agent", "rm", "few", "--force").exit == 0


def test_search_applies_the_policy_of_the_named_agent(here: RunSvc, monkeypatch: pytest.MonkeyPatch) -> None:
    for bucket in ("handbook", "prices"):
        Path(f"{bucket}.txt").write_text(f"The umber quay, as the {bucket} has it.\n")
        assert here("upload", f"{bucket}.txt", "-b", bucket).exit == 0
    assert here("agent", "create", "seller", "-b", "prices", "-b", "handbook", "--top-k", "1").exit == 0
    for words, results in ((), 1), (("-k", "2"), 2):
        assert len(here("search", "umber", "--agent", "seller", "--json", *words).json["data"]) == results
    assert here("agent", "set", "seller", "-b", "prices").exit == 0
    monkeypatch.setenv("SVC_BUCKET", "handbook")
    page = here("search", "umber", "--agent", "seller", "--json").json
    assert [result["filename"] for result in page["data"]] == ["prices.txt"]
    left_out = here("search", "umber", "--agent", "seller", "-b", "handbook")
    assert left_out.exit == 0
    assert left_out.stdout == "nothing found.\n"
    assert "does not search the bucket 'handbook'" in left_out.stderr
    assert here("agent", "rm", "seller", "--force").exit == 0


@pytest.mark.parametrize(
    ("failure", "commands"),
    {
        (6, "agent_exists"): ("create default",),
        (3, "invalid_agent_profile"): ("create 'x y'", "create x -b nowhere", "create x --top-k 51"),
        (2, "svc_usage"): (
            "create x --scope all",
            "create x --filters {",
            f"create x --filters {'[' * 5000}",
            "create x --top-k few",
            "create x --threshold nan",
            *("set default", "rm a/b"),
        ),
        (5, "agent_not_found"): ("set nobody --role x", "show nobody"),
        (3, "invalid_request"): ("rm default --force",),
    }.items(),
)
def test_refused_agent_command_prints_one_json_value_and_its_exit_code(
    failure: tuple[int, str], commands: tuple[str, ...], here: RunSvc
) -> None:
    for command in commands:
        assert here("agent", *shlex.split(command), "--json").failure == failure, command


def test_model_id_accepts_an_agent_id_or_a_model_id() -> None:
    models = {"default": "svc-agent", "sales": "svc-agent:sales", "svc-agents": "svc-agent:svc-agents"}
    models |= {model: model for model in ("svc-agent", "svc-rag-agent", "svc-rag-agent:sales")}
    assert {agent: model_id(agent) for agent in models} == models


@pytest.mark.rule("service.agents")
@pytest.mark.sqlite
def test_broken_policy_of_the_default_agent_is_reported_and_can_be_set_again(
    installation: Installation, at: Callable[[Installation], RunSvc]
) -> None:
    svc = at(installation)
    Path("notes.md").write_text("The umber quay was built of grey stone.\n")
    assert svc("upload", "notes.md", "-b", "inbox").exit == 0
    installation.stop()
    with closing(sqlite3.connect(installation.files.state)) as state, state:
        state.execute("""UPDATE agents SET policy = '{"scope": "team"}' WHERE id = 'default'""")
    assert installation.verify().exit == 1
    installation.start()
    doctor = svc("doctor", "--json")
    (check,) = [check for check in doctor.json["checks"] if check["check"] == "agents"]
    assert (doctor.exit, check["state"]) == (3, "failed")
    assert "default finds nothing. The stored policy is not an object" in check["text"]
    assert "svc agent set default" in check["hint"]
    assert svc("agent", "set", "default", "--bucket", "*").exit == 0
    assert len(svc("search", "umber", "--json").json["data"]) == 1
