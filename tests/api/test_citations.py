"""Proofs of quotes in the stored bytes, and the comparison of the sentences that cite them."""

import asyncio
from typing import Any

import pytest

from svc_daemon.core.access import api_keys
from svc_daemon.extract.documents import StoredDocument
from svc_daemon.extract.extractors import Extractor
from tests.acceptance.installations import PATIENCE_S
from tests.api.answers import body_of, details_of
from tests.api.daemons import Daemon
from tests.api.holds import Hold

VERIFY = "/v1/citations/verify"


def test_page_or_lines_that_a_client_leaves_out_of_a_quote_are_not_checked(working: Daemon) -> None:
    working.make_bucket()
    named = {"number": 1, "quote": "Fees rise.", "source_id": working.add_ready(b"# Fees\n\nFees rise.\n")}
    lines: list[dict[str, Any]] = [
        {},
        {"line_start": 3},
        {"line_start": 3, "line_end": 3},
        {"line_end": 9},
        {"page": 1},
    ]
    quotes = [{**named, "location": {"char_start": 8, "char_end": 18} | each} for each in lines]
    proofs = body_of(working.ask("POST", VERIFY, json={"text": "", "sources": quotes}))["data"]
    assert [each["proof"] for each in proofs] == ["proven", "proven", "proven", "elsewhere", "elsewhere"]


def test_quotes_of_an_answer_are_proven_in_the_stored_bytes_and_its_sentences_compared(working: Daemon) -> None:
    working.make_bucket()
    source_id = working.add_ready(b"# Fees\n\nThe umber quay costs 40 euros a day.\n")
    question = {"model": "svc-agent", "input": "What does the umber quay cost?", "buckets": ["inbox"]}
    answer = body_of(working.ask("POST", "/v1/responses", json=question))
    (quote,) = answer["sources"]

    def verify(text: str, *quotes: dict[str, Any], key: str | None = None) -> list[dict[str, Any]]:
        found = working.ask("POST", VERIFY, key=key, json={"text": text, "sources": quotes})
        return list(body_of(found)["data"])

    (proven,) = verify("The umber quay costs 40 euros a day. [1]", quote)
    assert (proven["proven"], proven["proof"], proven["result"], proven["changes"]) == (True, "proven", "supported", [])
    (changed,) = verify("The umber quay costs 50 euros a day. [1]", quote)
    assert (changed["proven"], changed["result"], bool(changed["changes"])) == (True, "changed", True)
    place = quote["location"]
    moved = {**quote, "location": {**place, "char_start": place["char_start"] + 1, "char_end": place["char_end"] + 1}}
    other = {**quote, "number": 2, "quote": "The umber quay is free."}
    both = verify("The umber quay costs 40 euros a day. [1] It is free. [2]", moved, other)
    assert [(each["proof"], each["result"]) for each in both] == [
        ("elsewhere", "not_judged"),
        ("not_found", "not_judged"),
    ]
    # Without its source a quote is only compared, and without a text it is only proven.
    (bare,) = verify("The umber quay costs 50 euros a day. [1]", {"number": 1, "quote": quote["quote"]})
    assert (bare["proven"], bare["proof"], bare["reason"], bare["result"]) == (None, None, None, "changed")
    assert [each["proof"] for each in verify("", quote)] == ["proven"]
    # Nobody learns what another team's or bucket's source says, nor whether it exists.
    elsewhere = working.add_key(api_keys.READ, buckets=(working.make_bucket("second"),))
    missing = {**quote, "source_id": "src_missing"}
    reasons = [verify("", each, key=key) for key in (elsewhere, working.add_team()) for each in (quote, missing)]
    assert {(each["proof"], each["reason"]) for (each,) in reasons} == {
        (reasons[0][0]["proof"], reasons[0][0]["reason"])
    }
    assert reasons[0][0]["proof"] == "source_gone"
    working.lose_blob(source_id)
    assert [each["proof"] for each in verify("", quote)] == ["bytes_lost"]


@pytest.mark.parametrize(
    "body",
    [
        {"text": "x"},
        {"text": "x", "quotes": [{"number": 1, "quote": "x", "source_id": "src_1"}]},
        {"quotes": [{"number": 1, "quote": "x", "source_id": "src_1", "location": {"char_start": 0}}]},
        {
            "quotes": [
                {"number": each, "quote": "x", "source_id": f"src_{each}", "location": {"char_start": 0, "char_end": 1}}
                for each in range(51)
            ]
        },
    ],
)
def test_verify_refuses_quotes_without_place_and_too_many_sources(shared: Daemon, body: dict[str, Any]) -> None:
    details_of(shared.ask("POST", VERIFY, json=body), "invalid_request")


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("Fees rise. [1] So do wages. [2]", [2]),
        ("Fees rise. [1, 7][3]", [3, 7]),
        ("Fees rise. [1]", []),
        ("It says that see table [12] and [14] for\nmore. [4]", []),
        ("See table [12]. [4]", [12]),
        ("", []),
    ],
)
def test_marks_that_lead_to_no_quote_are_listed(shared: Daemon, text: str, unknown: list[int]) -> None:
    quotes = [{"number": 1, "quote": "Fees rise."}, {"number": 4, "quote": "see table [12] and\n[14] for more."}]
    found = body_of(shared.ask("POST", VERIFY, json={"text": text, "quotes": quotes}))
    assert found["unknown_marks"] == unknown
    bare = body_of(shared.ask("POST", VERIFY, json={"text": text, "quotes": []}))
    assert set(unknown) <= set(bare["unknown_marks"])


class HeldExtractor:
    """An extractor that waits to be let go before it reads."""

    def __init__(self, extractor: Extractor) -> None:
        self.hold, self._extractor = Hold(), extractor

    async def extract(self, document: StoredDocument) -> Any:
        await asyncio.to_thread(self.hold.pass_through)
        return await self._extractor.extract(document)


def test_source_that_is_deleted_while_its_quote_is_proven_is_gone_and_not_lost(
    working: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    working.make_bucket()
    source_id = working.add_ready(b"Fees rise.\n")
    quote = {"number": 1, "quote": "Fees rise.", "source_id": source_id, "location": {"char_start": 0, "char_end": 10}}
    held = HeldExtractor(working.nodes[0].app.state.extractor)
    for node in working.nodes:
        monkeypatch.setattr(node.app.state, "extractor", held)
    proving = working.loop.begin(working.asking("POST", VERIFY, json={"sources": [quote]})())
    held.hold.wait_entered()
    working.delete(f"/v1/sources/{source_id}")
    working.wait(lambda: source_id not in working.blob_names(), "the bytes of the deleted source are removed")
    held.hold.release()
    (proof,) = body_of(proving.result(PATIENCE_S))["data"]
    assert (proof["proof"], proof["proven"]) == ("source_gone", False)
