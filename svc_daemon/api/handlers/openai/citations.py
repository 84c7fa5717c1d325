"""The HTTP handler that proves quotes, and compares the sentences that cite them with them."""

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from svc_daemon.api.endpoints import Endpoint
from svc_daemon.api.requests import body_of, caller, context_of
from svc_daemon.api.responses import respond
from svc_daemon.core.access import api_keys
from svc_daemon.core.answers.citations import NOT_JUDGED, Checked, check_quotes, list_unknown_marks
from svc_daemon.core.answers.passages import Passage, QuotePlace
from svc_daemon.core.text.chunking import Chunk
from svc_daemon.operations.sources import prove_quotes
from svc_daemon.wire.openai import citations as wire


async def check(request: Request) -> Response:
    key, body = caller(request, api_keys.READ), await body_of(request, wire.QuotesCheck)
    placed = [
        (place, each.source_id, each.quote, QuotePlace(**each.location.model_dump() | {"headings": ()}))
        for place, each in enumerate(body.quotes)
        if each.source_id is not None and each.location is not None
    ]
    proven = await prove_quotes(context_of(request), request.app.state.extractor, key, [each[1:] for each in placed])
    proofs = dict(zip((each[0] for each in placed), proven, strict=True))
    quotes = {
        each.number: Passage(
            chunk=Chunk(
                ordinal=0, text=each.quote, char_start=0, char_end=len(each.quote), headings=tuple(each.headings)
            ),
            title=each.title,
        )
        for place, each in enumerate(body.quotes)
        if place not in proofs or proofs[place].is_proven
    }
    # Run in a thread: a long answer takes a second.
    checked = await asyncio.to_thread(check_quotes, body.text, quotes, body.question)
    data = []
    for place, quote in enumerate(body.quotes):
        proof = proofs.get(place)
        said = checked[quote.number] if proof is None or proof.is_proven else Checked(NOT_JUDGED)
        data.append(
            wire.CheckedQuote(
                number=quote.number,
                proven=proof.is_proven if proof else None,
                proof=proof.result if proof else None,
                reason=proof.message if proof else None,
                result=said.result,
                changes=list(said.changes),
            )
        )
    numbered = [(each.number, each.quote) for each in body.quotes]
    unknown = await asyncio.to_thread(list_unknown_marks, body.text, numbered)
    return respond(request, {"object": "citation_checks", "data": data, "unknown_marks": unknown})


# fmt: off
ENDPOINTS = (
    Endpoint("POST", "/v1/citations/verify", check, "Prove quotes, and compare the sentences that cite them with them",
             {200: wire.CheckedQuotes}, body=wire.QuotesCheck, reads=True),
)
# fmt: on
