"""HTTP handlers that count the vectors of a bucket's passages, and that receive vectors for an import."""

from starlette.requests import Request
from starlette.responses import Response

from svc_daemon.api.endpoints import BUCKET, INDEX, NO_BUCKET, Endpoint
from svc_daemon.api.requests import body_of, caller, context_of
from svc_daemon.api.responses import respond
from svc_daemon.core.access import api_keys
from svc_daemon.operations.index import vectors as verbs
from svc_daemon.store.rows.vectors import VectorOffer
from svc_daemon.wire import vectors as wire


async def count(request: Request) -> Response:
    key, context = caller(request, *api_keys.LIST_SOURCES), context_of(request)
    bucket_id, model, counted = await verbs.count_vectors(context, key, request.path_params["bucket"])
    return respond(
        request,
        {
            "object": "bucket.vectors",
            "bucket_id": bucket_id,
            "state": context.embedding.state.value,
            "model": model,
            "passages": counted.chunks,
            "missing": counted.missing,
        },
    )


async def offer(request: Request) -> Response:
    context, key = context_of(request), caller(request, api_keys.FILE_CREATE)
    body = await body_of(request, wire.VectorOffers)
    offers = [VectorOffer(each.text_sha256, each.vector) for each in body.vectors]
    kept = await verbs.offer_vectors(context, key, request.path_params["bucket"], body.model, offers)
    model = context.embedding.embedder.model if context.embedding.embedder else None
    fields = {"object": "vector_offers", "kept": kept, "left_out": len(offers) - kept, "model": model}
    return respond(request, fields)


# fmt: off
ENDPOINTS = (
    Endpoint("GET", BUCKET + "/vectors", count, "Count the passages that have vectors", {200: wire.BucketVectors},
             errors=(*NO_BUCKET, *INDEX)),
    Endpoint("POST", BUCKET + "/vectors", offer, "Offer vectors for files that will be added",
             {200: wire.OffersKept}, body=wire.VectorOffers, errors=NO_BUCKET),
)
# fmt: on
