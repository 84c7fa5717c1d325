"""`svc eval` against a real daemon: the table, the JUnit report, required scores and the causes of misses."""

import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from svc_cli.client import Client
from svc_cli.evals.evaluations import DEPTH, EvalScope, Inquiry, ordinal
from svc_cli.evals.golden import Expectation, GoldenQuery
from tests.acceptance.calls import make_bucket, upload, wait_ended
from tests.acceptance.installations import Finished, Installation
from tests.cli.odd_servers import OddServer
from tests.cli.terminals import Json, RunSvc
from tests.conftest import UNLIMITED
from tests.samples import make_corrupt_pdf

Run = Callable[..., Finished]

HANDBOOK = (
    b"# Handbook\n\n## Vacation\n\nThe cobalt rule grants ninety days.\n\n## Garage\n\nThe garage opens at seven."
)
PRICING = b"# Prices\n\nThe umber plan costs five crowns a month.\n"
#: More passages on ferries than `svc eval` looks at, and one that ranks below all of them.
FERRIES = b"\n\n".join(b"# Pier %d\n\nThe ferry calls, a ferry." % number for number in range(DEPTH + 5))
LAST_FERRY = b"# Quay\n\n" + b"There are many words here, and one that counts. " * 8 + b"A ferry, vermilion."
#: A paragraph longer than any passage, with a sentence that fits into no passage.
CUT_TEXT = "the teal sentence begins here and " + "filler " * 150 + "ends there."
LONG = b"word " * 190 + CUT_TEXT.encode()


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """Two buckets: `staff` with the handbook and others, `sales` with the prices, which the agent `clerk` searches."""
    made = Installation(tmp_path_factory.mktemp("filled"), **UNLIMITED)
    made.start()
    staff = {"handbook.md": HANDBOOK, "ferries.md": FERRIES, "quay.md": LAST_FERRY, "long.txt": LONG}
    staff["broken.pdf"] = make_corrupt_pdf()
    with made.client() as client:
        for bucket, files in (("staff", staff), ("sales", {"pricing.md": PRICING})):
            make_bucket(client, bucket)
            for name, data in files.items():
                wait_ended(client, upload(client, bucket, name, data, title=name).json()["id"])
        client.post("/v1/agents", json={"agent_id": "clerk", "policy": {"bucket_ids": ["sales"]}}).raise_for_status()
    yield made
    made.clear()


@pytest.fixture
def run(at: Callable[[Installation], RunSvc], filled: Installation) -> Run:
    """Return a function that runs `svc eval` on these queries with these flags."""
    svc = at(filled)

    def run(queries: list[Json], *flags: str) -> Finished:
        Path("golden.json").write_text(json.dumps({"queries": queries}))
        return svc("eval", "golden.json", *flags)

    return run


def _reasons(ended: Finished) -> list[Json]:
    """Return the reason for each item's first expectation."""
    return [item["expected"][0]["reason"] for item in ended.json["items"]]


NO_SOURCE = "no_such_source: no source has the id, title or"
NO_PASSAGE = "a search for its words finds no passage with this"
HAND = {"query": "cobalt rule", "source": "handbook.md"}
NINETY = {"query": "cobalt", "text": "ninety days"}
#: Queries by the code of their miss and the start of its message.
MISSES: dict[str, Json] = {
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
    "no_match: nothing in it matches the query": {"query": "umber", "source": "handbook.md"},
    f"text_missing: {NO_PASSAGE} text": {"query": "cobalt", "text": "zinc rule"},
    f"heading_missing: {NO_PASSAGE} heading": {"query": "cobalt", "heading": "Zinc"},
}


def test_eval_reports_the_cause_of_each_miss(run: Run) -> None:
    second = {"query": "garage opens seven vacation", "source": "handbook.md", "heading": "Vacation"}
    for causes, flags in ((MISSES, ()), ({"ranked: ranked 2nd": second}, ("-k", "1"))):
        queries = [query | {"name": cause} for cause, query in causes.items()]
        ended = run(queries, "-b", "staff", "--json", *flags)
        found = [(item["found"], item["expected"][0]["rank"]) for item in ended.json["items"]]
        assert ended.exit == 3
        assert found == [(False, None)] * len(causes)
        for cause, reason in zip(causes, _reasons(ended), strict=True):
            assert f"{reason['code']}: {reason['message']}".startswith(cause)


def test_eval_reports_a_miss_that_the_agents_policy_causes(run: Run, filled: Installation) -> None:
    ended = run([HAND], "--agent", "clerk", "--json")
    assert ended.exit == 3
    assert [reason["code"] for reason in _reasons(ended)] == ["policy"]
    assert run([{"query": "umber plan", "source": "pricing.md"}], "--agent", "clerk").exit == 0
    with filled.client() as client:
        client.put("/v1/agents/default", json={"policy": {"bucket_ids": ["sales"]}}).raise_for_status()
        ended = run([HAND, NINETY], "--json")
        client.put("/v1/agents/default", json={"policy": {"bucket_ids": ["*"]}}).raise_for_status()
    assert ended.exit == 3
    assert [reason["code"] for reason in _reasons(ended)] == ["policy", "policy"]


def test_key_limited_to_an_agent_gets_only_causes_within_its_scope(
    run: Run, filled: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    with filled.client() as client:
        fields = {"name": "clerk", "preset": "read", "models": ["svc-agent:clerk"]}
        monkeypatch.setenv("SVC_API_KEY", client.post("/v1/keys", json=fields).json()["key"])
    ended = run([HAND, NINETY], "--agent", "clerk", "--json")
    first, second = _reasons(ended)
    assert first == {"code": "no_match", "message": "nothing in the parts that the agent searches matches the query"}
    assert ended.exit == 3
    assert second["code"] == "text_missing"
    assert "`svc agent ls`" in run([HAND, NINETY], "-b", "staff").stderr


def test_invalid_filter_is_reported_with_its_query(run: Run) -> None:
    bad = {"query": "fox", "source": "a.md", "filters": {"type": "like", "key": "a", "value": 1}}
    ended = run([FOUND, bad], "-b", "staff")
    assert ended.exit == 3
    assert "query 'fox': filters.type: must be" in ended.stderr


def test_miss_of_a_source_that_is_not_ready_is_explained(odd: OddServer) -> None:
    queued = {"id": "src_1", "title": "a.md", "filename": "a.md", "status": "queued", "ready": False}
    odd.answers["GET /v1/buckets"] = (200, {"buckets": [{"id": "bkt_1", "slug": "staff"}]}, {})
    odd.answers["GET /v1/buckets/bkt_1/sources"] = (200, {"sources": [queued], "has_more": False}, {})
    wanted = Expectation(source="a.md")
    with Client(odd.url, "sk-test") as client:
        asked = GoldenQuery(query="fox", name="fox", expected=(wanted,))
        miss = Inquiry(client, EvalScope(buckets=("staff",))).explain(asked, wanted, [])
    assert miss == {"code": "not_ready", "message": "it is not ready: queued"}
    assert [ordinal(number) for number in (1, 2, 3, 11, 14, 22)] == ["1st", "2nd", "3rd", "11th", "14th", "22nd"]


FOUND = HAND | {"heading": "Vacation", "text": "ninety days"}
HALF = {"query": "umber plan", "name": "price", "expect": ["pricing.md", "terms\x07.pdf"]}
THREE = [FOUND, HALF, {"query": "zinc", "source": "zinc.md"}]
TABLE = """\
        query        rank  recall  mrr   ndcg
found   cobalt rule  1     1.00    1.00  1.00
missed  price        1     0.50    1.00  0.61
missed  zinc               0.00    0.00  0.00

missed: price
  terms\\x07.pdf: no source has the id, title or file name 'terms\\x07.pdf'
missed: zinc
  zinc.md: no source has the id, title or file name 'zinc.md'

recall@10 0.500  MRR@10 0.667  nDCG@10 0.538  1 of 3 queries find all that they should
"""


def test_means_and_ranks_are_reported(run: Run) -> None:
    ended = run(THREE, "--json")
    summary = ended.json
    assert ended.exit == 3
    assert [item["rank"] for item in summary["items"]] == [1, 1, None]
    assert summary["metrics"] == {"recall": 0.5, "mrr": 0.666667, "ndcg": 0.537716}
    assert summary["counts"] == {"queries": 3, "found": 1, "missed": 2}
    assert summary["error"]["details"] == {"missed": ["price", "zinc"]}
    assert summary["error"].keys() >= {"request_id", "hint"}
    assert run(THREE).stdout == TABLE


def test_mean_below_the_required_minimum_exits_with_3(run: Run) -> None:
    demands = {"--min-recall 0.5": 0, "--min-recall 0.51": 3, "--min-recall 0": 0, "--min-recall 1.1": 2, "--k 0": 2}
    demands |= {"--min-mrr 0.6 --min-ndcg 0.5": 0, "--min-mrr 0.6 --min-ndcg 0.54": 3, "--min-recall nan": 2}
    for flags, code in demands.items():
        assert run(THREE, *shlex.split(flags)).exit == code, flags


def test_junit_report_has_a_case_for_each_query_and_each_required_minimum(run: Run) -> None:
    def report(*flags: str) -> tuple[list[str | None], Json]:
        """Return the numbers of tests, failures and skipped tests, and the failures by case."""
        assert run(THREE, "--junit", "report.xml", *flags).exit == 3
        suite = ElementTree.parse("report.xml").getroot()[0]
        failures = {case.get("name"): case.find("failure") for case in suite}
        numbers = [suite.get(name) for name in ("tests", "failures", "skipped")]
        return numbers, {str(name): failure for name, failure in failures.items() if failure is not None}

    numbers, failures = report()
    assert numbers == ["3", "2", "0"]
    assert list(failures) == ["price", "zinc"]
    assert failures["price"].get("type") == "no_such_source"
    assert "terms .pdf" in failures["price"].text
    numbers, failures = report("--min-recall", "0.5", "--min-mrr", "0.9")
    assert numbers == ["5", "1", "2"]
    assert list(failures) == ["mrr@10 is at least 0.9"]


def test_ndjson_prints_each_query_and_then_the_summary(run: Run) -> None:
    lines = [json.loads(line) for line in run(THREE[::2], "--ndjson").stdout.splitlines()]
    assert [line["type"] for line in lines] == ["eval.query", "eval.query", "eval.summary"]


def test_a_bad_file_or_a_missing_folder_is_reported_before_any_query(svc: RunSvc) -> None:
    assert svc("eval", "golden.yaml").exit == 5
    Path("golden").mkdir()
    assert "golden is a folder" in svc("eval", "golden").stderr
    Path("golden.yaml").write_text("- query: fox\n  soruce: a.md\n")
    refused = svc("eval", "golden.yaml", "--json")
    assert refused.failure == (2, "svc_golden_refused")
    assert "query 1, line 1: there is no field 'soruce'" in refused.stderr
    Path("golden.yaml").write_text("- query: fox\n  source: a.md\n")
    Path(".git").mkdir()
    Path("link.xml").symlink_to(Path("..", "theirs.xml"))
    Path("linked").symlink_to("..")
    reports = {
        "link.xml": "leads out of its folder",
        "linked/eval.xml": "the link linked leads out of the repository",
        "reports/eval.xml": "there is no folder reports",
        "golden": "golden is a folder",
        "x" * 300: "too long",
    }
    for path, message in reports.items():
        unwritable = svc("eval", "golden.yaml", "--junit", path)
        assert unwritable.exit == 2, path
        assert message in unwritable.stderr, path
