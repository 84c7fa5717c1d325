"""`svc eval` against a real daemon: the table, the report, the gate, and why each miss missed."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from svc_cli.client import Client
from svc_cli.evals.golden import Expectation, GoldenQuery
from svc_cli.evals.misses import Inquiry, ordinal
from svc_cli.evals.scopes import DEPTH, EvalScope
from tests.acceptance.calls import make_bucket, upload, wait_ended
from tests.acceptance.installations import Finished, Installation
from tests.cli.consoles import RunSvc
from tests.cli.odd_servers import OddServer
from tests.conftest import UNLIMITED
from tests.samples import make_corrupt_pdf

Json = dict[str, Any]
Run = Callable[..., Finished]

HANDBOOK = (
    b"# Handbook\n\n## Vacation\n\nThe cobalt rule grants ninety days.\n\n## Garage\n\nThe garage opens at seven.\n"
)
PRICING = b"# Prices\n\nThe umber plan costs five crowns a month.\n"
#: More passages on ferries than can be seen, and one that is the least of them.
FERRIES = b"\n\n".join(b"# Pier %d\n\nThe ferry calls, a ferry." % number for number in range(DEPTH + 5))
LAST_FERRY = b"# Quay\n\n" + b"There are many words here, and one that counts. " * 8 + b"A ferry, vermilion."
#: One paragraph longer than any passage, with a sentence that no passage can hold.
LONG = b"word " * 190 + b"the teal sentence begins here and " + b"filler " * 150 + b"ends there."
CUT_TEXT = "the teal sentence begins here and " + "filler " * 150 + "ends there."


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """Two buckets: `staff` with the handbook and others, `sales` with the prices."""
    made = Installation(tmp_path_factory.mktemp("filled"), **UNLIMITED)
    made.start()
    documents = {"handbook.md": HANDBOOK, "ferries.md": FERRIES, "quay.md": LAST_FERRY, "long.txt": LONG}
    with made.client() as client:
        for bucket, files in (
            ("staff", {**documents, "broken.pdf": make_corrupt_pdf()}),
            ("sales", {"pricing.md": PRICING}),
        ):
            make_bucket(client, bucket)
            for name, data in files.items():
                wait_ended(client, upload(client, bucket, name, data, title=name).json()["id"])
        client.post("/v1/agents", json={"agent_id": "clerk", "policy": {"bucket_ids": ["sales"]}}).raise_for_status()
    yield made
    made.clear()


@pytest.fixture
def run(svc: RunSvc, at: Callable[[Installation], None], filled: Installation) -> Run:
    """`svc eval` of these queries, with these flags."""
    at(filled)

    def run(queries: list[Json], *flags: str) -> Finished:
        Path("golden.json").write_text(json.dumps({"queries": queries}))
        return svc("eval", "golden.json", *flags)

    return run


NO_SOURCE = "no_such_source: no source has the id, title or"
NO_PASSAGE = "a search for its words finds no passage with this"
HAND = {"query": "cobalt rule", "source": "handbook.md"}
#: Queries by the code of their miss and the start of its message.
MISSES: dict[str, Json] = {
    "ranked: ranked 2nd": {"query": "garage opens seven vacation", "source": "handbook.md", "heading": "Vacation"},
    f"{NO_SOURCE} file name 'hand.md'": {"query": "cobalt", "source": "hand.md"},
    f"{NO_SOURCE} file name 'src_0'": {"query": "cobalt", "source": "src_0"},
    "out_of_scope: it is in sales, which is not": {"query": "umber plan", "source": "pricing.md"},
    "not_extracted: it failed: ": {"query": "cobalt", "source": "broken.pdf"},
    "text_missing: the text is in none of its passages": HAND | {"text": "eighty days"},
    "text_cut: the text is in it, cut": {"query": "teal", "source": "long.txt", "text": CUT_TEXT},
    "heading_missing: none of its passages is under such a heading": HAND | {"heading": "Leave"},
    "heading_missing: the text is in it under another heading": HAND | {"heading": "Garage", "text": "ninety"},
    "filtered: left out by the query's tags or filters": HAND | {"tags": ["public"]},
    "ranked_below: ranked below the 50th": {"query": "ferry", "source": "quay.md"},
    "ranked_below: ranked below the 50": {"query": "ferry", "text": "a ferry, vermilion"},
    "no_match: nothing in it answers the query": {"query": "umber", "source": "handbook.md"},
    f"text_missing: {NO_PASSAGE} text": {"query": "cobalt", "text": "zinc rule"},
    f"heading_missing: {NO_PASSAGE} heading": {"query": "cobalt", "heading": "Zinc"},
}


@pytest.mark.parametrize("cause", MISSES)
def test_a_miss_has_its_cause(run: Run, cause: str) -> None:
    ended = run([MISSES[cause]], "-b", "staff", "--json", *(["-k", "1"] if cause.startswith("ranked:") else []))
    (item,) = ended.json["items"]
    (expected,) = item["expected"]
    assert (ended.exit, item["found"], expected["rank"]) == (3, False, None)
    assert "{code}: {message}".format(**expected["reason"]).startswith(cause)


def test_an_agent_s_policy_can_be_the_cause(run: Run) -> None:
    ended = run([{"query": "cobalt rule", "source": "handbook.md"}], "--agent", "clerk", "--json")
    (expected,) = ended.json["items"][0]["expected"]
    assert expected["reason"]["code"] == "policy"
    assert run([{"query": "umber plan", "source": "pricing.md"}], "--agent", "clerk").exit == 0


def test_without_agent_and_buckets_the_default_agent_s_policy_can_be_the_cause(run: Run, filled: Installation) -> None:
    asked = [{"query": "cobalt rule", "source": "handbook.md"}, {"query": "cobalt", "text": "ninety days"}]
    with filled.client() as client:
        client.put("/v1/agents/default", json={"policy": {"bucket_ids": ["sales"]}}).raise_for_status()
        ended = run(asked, "--json")
        client.put("/v1/agents/default", json={"policy": {"bucket_ids": ["*"]}}).raise_for_status()
    assert ended.exit == 3, ended.stderr
    assert [item["expected"][0]["reason"]["code"] for item in ended.json["items"]] == ["policy", "policy"]


def test_a_key_that_is_kept_to_an_agent_is_told_what_it_may_know(
    run: Run, filled: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    with filled.client() as client:
        fields = {"name": "clerk", "preset": "read", "models": ["svc-agent:clerk"]}
        monkeypatch.setenv("SVC_API_KEY", client.post("/v1/keys", json=fields).json()["key"])
    asked = [{"query": "cobalt rule", "source": "handbook.md"}, {"query": "cobalt", "text": "ninety days"}]
    ended = run(asked, "--agent", "clerk", "--json")
    assert ended.exit == 3
    told = [item["expected"][0]["reason"] for item in ended.json["items"]]
    assert told[0] == {"code": "no_match", "message": "nothing that the agent searches of it answers the query"}
    assert told[1]["code"] == "text_missing"
    assert "`svc agent ls`" in run(asked, "-b", "staff").stderr


def test_a_filter_that_makes_no_sense_is_told_with_its_query(run: Run) -> None:
    bad = {"query": "fox", "source": "a.md", "filters": {"type": "like", "key": "a", "value": 1}}
    ended = run([FOUND, bad], "-b", "staff")
    assert ended.exit == 3
    assert "query 'fox': filters.type: must be" in ended.stderr


def test_a_source_that_is_not_ready_can_be_the_cause(odd: OddServer) -> None:
    bucket = {"id": "bkt_1", "slug": "staff"}
    queued = {"id": "src_1", "title": "a.md", "filename": "a.md", "status": "queued", "ready": False}
    odd.answers["GET /v1/buckets"] = (200, {"buckets": [bucket]}, {})
    odd.answers["GET /v1/buckets/bkt_1/sources"] = (200, {"sources": [queued], "has_more": False}, {})
    wanted = Expectation(source="a.md")
    with Client(odd.url, "sk-test") as client:
        asked = GoldenQuery(query="fox", name="fox", expected=(wanted,))
        miss = Inquiry(client, EvalScope(buckets=("staff",))).explain(asked, wanted, [])
    assert (miss.code, miss.message) == ("not_ready", "it is not ready: queued")


def test_an_ordinal() -> None:
    assert [ordinal(number) for number in (1, 2, 3, 11, 14, 22)] == ["1st", "2nd", "3rd", "11th", "14th", "22nd"]


FOUND = {"query": "cobalt rule", "source": "handbook.md", "heading": "Vacation", "text": "ninety days"}
HALF = {"query": "umber plan", "name": "price", "expect": ["pricing.md", "terms\x07.pdf"]}
MISSED = {"query": "zinc", "source": "zinc.md"}


def test_means_and_ranks_are_told(run: Run) -> None:
    ended = run([FOUND, HALF, MISSED], "--json")
    assert ended.exit == 3
    summary = ended.json
    assert summary["metrics"] == {"recall": 0.5, "mrr": 0.666667, "ndcg": 0.537716}
    assert [item["rank"] for item in summary["items"]] == [1, 1, None]
    assert summary["counts"] == {"queries": 3, "found": 1, "missed": 2}
    assert summary["error"]["details"] == {"missed": ["price", "zinc"]}


def test_the_table_names_each_query_and_each_miss(run: Run) -> None:
    ended = run([FOUND, HALF, MISSED])
    assert ended.stdout == (
        "        query        rank  recall  mrr   ndcg\n"
        "found   cobalt rule  1     1.00    1.00  1.00\n"
        "missed  price        1     0.50    1.00  0.61\n"
        "missed  zinc               0.00    0.00  0.00\n"
        "\n"
        "missed: price\n"
        "  terms\\x07.pdf: no source has the id, title or file name 'terms\\x07.pdf'\n"
        "missed: zinc\n"
        "  zinc.md: no source has the id, title or file name 'zinc.md'\n"
        "\n"
        "recall@10 0.500  MRR@10 0.667  nDCG@10 0.538  1 of 3 queries find all that they should\n"
    )


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        (["--min-recall", "0.5"], 0),
        (["--min-recall", "0.51"], 3),
        (["--min-mrr", "0.6", "--min-ndcg", "0.5"], 0),
        (["--min-mrr", "0.6", "--min-ndcg", "0.54"], 3),
        (["--min-recall", "0"], 0),
        (["--min-recall", "1.1"], 2),
        (["--min-recall", "nan"], 2),
        (["--k", "0"], 2),
    ],
)
def test_a_mean_below_what_is_demanded_is_exit_3(run: Run, flags: list[str], code: int) -> None:
    assert run([FOUND, HALF, MISSED], *flags).exit == code


def test_the_junit_report_has_a_case_for_each_query_and_each_demand(run: Run) -> None:
    assert run([FOUND, HALF, MISSED], "--junit", "strict.xml").exit == 3
    suite = ElementTree.parse("strict.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("3", "2", "0")
    failures = {case.get("name"): case.find("failure") for case in suite}
    assert failures["cobalt rule"] is None
    told = failures["price"]
    assert told is not None
    assert told.get("type") == "no_such_source"
    assert "terms .pdf" in (told.text or "")
    assert run([FOUND, HALF, MISSED], "--junit", "lax.xml", "--min-recall", "0.5", "--min-mrr", "0.9").exit == 3
    suite = ElementTree.parse("lax.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("5", "1", "2")
    (failed,) = [case.get("name") for case in suite if case.find("failure") is not None]
    assert failed == "mrr@10 is at least 0.9"


def test_as_lines_each_query_is_told_when_it_is_judged(run: Run) -> None:
    lines = [json.loads(line) for line in run([FOUND, MISSED], "--ndjson").stdout.splitlines()]
    assert [line["type"] for line in lines] == ["eval.query", "eval.query", "eval.summary"]


def test_a_bad_file_or_a_folder_that_is_not_there_is_told_before_anything_is_asked(svc: RunSvc) -> None:
    assert svc("eval", "golden.yaml").exit == 5
    Path("golden").mkdir()
    assert "golden is a folder" in svc("eval", "golden").stderr
    Path("golden.yaml").write_text("- query: fox\n  soruce: a.md\n")
    refused = svc("eval", "golden.yaml", "--json")
    assert (refused.exit, refused.json["error"]["code"]) == (2, "svc_golden_refused")
    assert "query 1, line 1: there is no field 'soruce'" in refused.stderr
    Path("golden.yaml").write_text("- query: fox\n  source: a.md\n")
    assert "there is no folder reports" in svc("eval", "golden.yaml", "--junit", "reports/eval.xml").stderr
    assert "this is a folder" in svc("eval", "golden.yaml", "--junit", "golden").stderr
    unwritable = svc("eval", "golden.yaml", "--junit", f"{'x' * 300}.xml")
    assert (unwritable.exit, "too long" in unwritable.stderr) == (2, True)
