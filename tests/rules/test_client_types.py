"""The fields that methods of the Python client take are those of the requests, with the same types."""

from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import pytest
from pydantic import BaseModel

from svc_cli.client import types
from svc_daemon.api.app import ENDPOINTS
from svc_daemon.api.endpoints import PAGE
from svc_daemon.wire import agents, buckets, keys, searches, sources, vectors
from svc_daemon.wire.openai import citations, responses

#: The requests of which the client takes fields, and the fields that it takes in another way or not at all.
REQUESTS: dict[type, tuple[type[BaseModel], set[str]]] = {
    types.AgentCreateDict: (agents.AgentCreate, {"dry_run"}),
    types.AgentUpdateDict: (agents.AgentUpdate, {"dry_run"}),
    types.AskOptions: (
        responses.ResponseCreate,
        set(responses.ResponseCreate.model_fields) - {"buckets", "instructions", "metadata"},
    ),
    types.BucketFieldsDict: (buckets.BucketFields, {"dry_run"}),
    types.BucketUpdateDict: (buckets.BucketUpdate, {"dry_run"}),
    types.ChunkingUpdateDict: (buckets.ChunkingUpdate, set()),
    types.KeyFieldsDict: (keys.KeyFields, set()),
    types.OfferedVectorDict: (vectors.OfferedVector, set()),
    types.PolicyFieldsDict: (agents.PolicyFields, set()),
    types.QuoteToCheckDict: (citations.QuoteToCheck, set()),
    types.QuotedPlaceDict: (citations.QuotedPlace, set()),
    types.QaCreateDict: (sources.QaCreate, {"question", "answer", "webhook", "dry_run"}),
    types.RefreshChoiceDict: (sources.RefreshChoice, set()),
    types.SearchOptions: (searches.SearchRequest, {"query"}),
    types.SourceUpdateDict: (sources.SourceUpdate, {"dry_run"}),
}
#: A new bucket's sizes may be given in part, as in an update.
PARTS: dict[Any, Any] = {
    types.QuotedPlaceDict: citations.QuotedPlace,
    types.PolicyFieldsDict: agents.PolicyFields,
    types.RefreshChoiceDict: sources.RefreshChoice,
    types.ChunkingUpdateDict: buckets.Chunking,
    buckets.ChunkingUpdate: buckets.Chunking,
}


def plain(hint: Any) -> Any:
    """The type without the limits of its values."""
    origin, inner = get_origin(hint), tuple(map(plain, get_args(hint)))
    if origin is Annotated:
        return inner[0]
    return (Union if origin is UnionType else origin, inner) if inner else PARTS.get(hint, hint)


@pytest.mark.rule("client.types")
@pytest.mark.parametrize(("taken", "request_body", "left_out"), [(each, *REQUESTS[each]) for each in REQUESTS])
def test_client_takes_the_fields_of_a_request(taken: Any, request_body: type[BaseModel], left_out: set[str]) -> None:
    fields = {name: each for name, each in request_body.model_fields.items() if name not in left_out}
    hints = get_type_hints(taken)
    assert {name: plain(each) for name, each in hints.items()} == {
        name: plain(each.annotation) for name, each in fields.items()
    }
    assert taken.__required_keys__ == {name for name, each in fields.items() if each.is_required()}


def test_client_takes_the_filters_of_the_list_of_sources() -> None:
    (row,) = (row for row in ENDPOINTS if (row.method, row.path) == ("GET", "/v1/buckets/{bucket}/sources"))
    assert get_type_hints(types.SourceFilters).keys() == row.query.keys() - PAGE.keys() - {"group_by"}
