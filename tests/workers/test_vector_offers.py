"""Vectors that an import offers: used where they are the model's own, and otherwise computed as if there were none."""

import base64
import hashlib
import math
import struct
from dataclasses import replace
from typing import Any

import pytest

from svc_daemon.core import readiness
from svc_daemon.embed.contract import EmbedFailed
from svc_daemon.operations.index.vectors import MOST_DIMENSIONS, SAMPLES, find_offers, finish_offers, forget_offers
from svc_daemon.provider.contract import ChunkText, chunk_id
from svc_daemon.settings.limits import Limits
from svc_daemon.store.rows.sources.sources import get_source, update_state
from tests.api.answers import body_of
from tests.api.daemons import Daemon
from tests.api.embedders import WordEmbedder
from tests.api.fixtures import MakeDaemon
from tests.provider.samples import put, unit
from tests.workers.shelves import Shelf, start_embedding
from tests.workers.test_embedding import missing, wait_embedded, wait_state

OFFERS = "/v1/buckets/inbox/vectors"
#: Two passages, about stone and about fish, and the texts that are embedded.
QUAY = b"# Quay\n\nThe umber quay of stone.\n\n# Fish\n\nThe umber herring.\n"
TEXTS = ("Notes\nQuay\nThe umber quay of stone.", "Notes\nFish\nThe umber herring.")


def vector_of(text: str) -> bytes:
    return WordEmbedder().embed([text])[0]


def nearly(vector: bytes) -> bytes:
    """The vector as another machine may round it."""
    numbers = struct.unpack(f"<{len(vector) // 4}f", vector)
    return struct.pack(f"<{len(numbers)}f", *(number * (1 + 1e-5) for number in numbers))


def row(text: str, vector: bytes | str) -> dict[str, str]:
    encoded = vector if isinstance(vector, str) else base64.b64encode(vector).decode()
    return {"text_sha256": hashlib.sha256(text.encode()).hexdigest(), "vector": encoded}


def offer(daemon: Daemon, *rows: dict[str, str], model: str = "words@1", path: str = OFFERS, **options: Any) -> int:
    """Offer these rows; how many the service keeps."""
    answer = daemon.post(path, json={"model": model, "vectors": [*rows]}, **options)
    assert answer["kept"] + answer["left_out"] == len(rows)
    return int(answer["kept"])


def stored(daemon: Daemon, source_id: str) -> dict[str, bytes]:
    """The vectors of the source by the hash of their text."""
    answer = daemon.show(f"/v1/sources/{source_id}/text", vectors="true")
    rows = {each["text_sha256"]: each["vector"] for each in answer["chunks"]}
    return {name: base64.b64decode(vector) for name, vector in rows.items() if vector}


def add_embedded(daemon: Daemon, shelf: Shelf, data: bytes = QUAY, **fields: str) -> str:
    """Add a source, and have its passages embedded once it is ready: only then the offers for them are deleted."""
    shelf.first.gate.clear()
    source_id = daemon.add_ready(data, **{"title": "Notes", **fields})
    shelf.first.gate.set()
    wait_embedded(daemon)
    return source_id


def wait_opened(daemon: Daemon, shelf: Shelf) -> None:
    start_embedding(daemon, shelf)
    wait_state(daemon, "ready")


@pytest.mark.rule("export.offers")
def test_offered_vectors_are_stored_to_the_last_bit_and_only_samples_are_computed(
    working: Daemon, shelf: Shelf
) -> None:
    wait_opened(working, shelf)
    texts = [f"Notes\nPart {number}\nThe umber quay." for number in range(30)]
    near = [row(text, nearly(vector_of(text))) for text in texts]
    # Two sources of this bucket have the same text, and one of another bucket needs its own vector.
    working.make_bucket("other")
    assert offer(working, *near, row("another text", vector_of("stone"))) == 31
    assert offer(working, near[0]) == 1
    data = "".join(f"# {text.split(chr(10))[1]}\n\nThe umber quay.\n\n" for text in texts).encode()
    elsewhere = add_embedded(working, shelf, data[: data.index(b"# Part 1")], bucket="other")
    assert stored(working, elsewhere) == {near[0]["text_sha256"]: vector_of(texts[0])}
    source_id = add_embedded(working, shelf, data)
    assert stored(working, source_id) == {each["text_sha256"]: base64.b64decode(each["vector"]) for each in near}
    twin = add_embedded(working, shelf, data[: data.index(b"# Part 1")])
    assert stored(working, twin) == {near[0]["text_sha256"]: base64.b64decode(near[0]["vector"])}
    # The samples of the one batch, and the small sources.
    assert sum(shelf.first.batches) == SAMPLES + 2
    # What was used is not kept, and the rest not for long.
    working.wait(lambda: working.count("vector_offers") == 1, "the used offers are gone")
    assert working.loop.run(forget_offers(working.context)) == 0
    working.advance(90_000)
    working.loop.run(forget_offers(working.context))
    assert working.count("vector_offers") == 0
    counted = working.show(OFFERS)
    assert (counted["passages"], counted["missing"], counted["model"]) == (31, 0, "words@1")


@pytest.mark.rule("export.offers")
def test_a_vector_that_does_not_fit_is_left_out_and_the_passage_gets_its_own(working: Daemon, shelf: Shelf) -> None:
    wait_opened(working, shelf)
    right = vector_of(TEXTS[0])
    numbers = struct.unpack("<4f", right)
    unfit: dict[str, bytes | str] = {
        "no base64": "§§§§",
        "nothing": b"",
        "half a number": right[:-2],
        "another dimension": unit(1, 0, 0),
        "too long": struct.pack("<4f", *(2 * number for number in numbers)),
        "zeros": bytes(16),
        "not a number": struct.pack("<4f", math.nan, *numbers[1:]),
        "infinite": struct.pack("<4f", math.inf, *numbers[1:]),
    }
    assert [name for name, vector in unfit.items() if offer(working, row(TEXTS[0], vector))] == []
    assert offer(working, row(TEXTS[0], right), model="words@2") == 0
    working.make_bucket("other")
    # Of another bucket, another title, and another text.
    assert offer(working, row(TEXTS[0], unit(0, 0, 0, 1)), path="/v1/buckets/other/vectors") == 1
    assert offer(working, row("Title\nQuay\nThe umber quay of stone.", unit(0, 0, 0, 1)), row("x", right)) == 2
    source_id = add_embedded(working, shelf)
    assert sorted(stored(working, source_id).values()) == sorted(map(vector_of, TEXTS))
    assert sum(shelf.first.batches) == len(TEXTS)


@pytest.mark.rule("export.offers")
def test_offers_for_one_bucket_change_nothing_in_another(working: Daemon, shelf: Shelf) -> None:
    wait_opened(working, shelf)
    working.make_bucket("other")
    assert (
        offer(working, *(row(text, nearly(vector_of(text))) for text in TEXTS), path="/v1/buckets/other/vectors") == 2
    )
    shelf.first.gate.clear()
    # No passage of this team is embedded before the source is in both buckets.
    working.add_ready(b"# First\n", title="First")
    working.wait(lambda: any(shelf.first.batches), "the worker is at the first source")
    source_id = working.add_ready(QUAY, title="Notes")
    working.post("/v1/buckets/other/sources", json={"source_id": source_id})
    shelf.first.gate.set()
    wait_embedded(working)
    assert stored(working, source_id) == {row(text, b"")["text_sha256"]: vector_of(text) for text in TEXTS}


@pytest.mark.rule("export.offers")
def test_which_offers_are_samples_can_not_be_foreseen(working: Daemon, shelf: Shelf) -> None:
    shelf.first.gate.clear()
    wait_opened(working, shelf)
    texts = [f"Notes\nPart {number}\nThe umber quay." for number in range(30)]
    assert offer(working, *(row(text, vector_of(text)) for text in texts)) == 30
    working.add_ready(
        "".join(f"# Part {number}\n\nThe umber quay.\n\n" for number in range(30)).encode(), title="Notes"
    )
    team_id, context = working.team_id, working.context
    chunks = context.provider.list_unembedded(team_id, "words@1", 30)
    drawn = [find_offers(context, team_id, shelf.first, chunks).samples for _ in range(20)]
    assert {len(samples) for samples in drawn} == {SAMPLES}
    # The ids are the same each time.
    assert len({frozenset(samples) for samples in drawn}) > 1
    shelf.first.gate.set()


@pytest.mark.rule("export.offers")
def test_if_a_sample_is_wrong_no_offer_for_the_batch_is_used(
    working: Daemon, shelf: Shelf, caplog: pytest.LogCaptureFixture
) -> None:
    wait_opened(working, shelf)
    # Each vector is one of the model's, but of the other passage.
    wrong = [row(text, vector_of(other)) for text, other in zip(TEXTS, TEXTS[::-1], strict=True)]
    # Even if they are offered for more passages, they are dropped at once; those of other texts and buckets are not.
    working.make_bucket("other")
    assert [offer(working, *wrong), offer(working, *wrong), offer(working, row("later", vector_of("stone")))] == [
        2,
        2,
        1,
    ]
    assert offer(working, wrong[0], path="/v1/buckets/other/vectors") == 1
    source_id = add_embedded(working, shelf)
    assert sorted(stored(working, source_id)) == sorted(row(text, b"")["text_sha256"] for text in TEXTS)
    assert stored(working, source_id) == {row(text, b"")["text_sha256"]: vector_of(text) for text in TEXTS}
    assert "imported vectors are not used" in caplog.text
    working.wait(lambda: working.count("vector_offers") == 2, "the offers are gone")


@pytest.mark.rule("export.offers-kept")
def test_an_offer_stays_until_its_source_is_active_with_the_generation_that_was_embedded(
    working: Daemon, shelf: Shelf
) -> None:
    wait_opened(working, shelf)
    source_id = add_embedded(working, shelf)
    assert offer(working, row(TEXTS[0], vector_of(TEXTS[0]))) == 1
    generation = working.read(lambda connection: get_source(connection, working.team_id, source_id)).generation
    for embedded, left in ((generation + 1, 1), (generation, 0)):
        chunk = ChunkText(chunk_id(source_id, embedded, 0), TEXTS[0])
        assert working.loop.run(finish_offers(working.context, working.team_id, [chunk], [], [])) == []
        assert working.count("vector_offers") == left


def test_offers_for_passages_that_have_their_vectors_before_their_source_is_active_go_when_it_is(
    daemon: Daemon, shelf: Shelf
) -> None:
    bucket_id = daemon.make_bucket()
    wait_opened(daemon, shelf)
    assert offer(daemon, row(TEXTS[0], nearly(vector_of(TEXTS[0])))) == 1
    source_id = daemon.add_source(QUAY[: QUAY.index(b"# Fish")], title="Notes")
    # Its document is in the index, and the transaction that makes the source active is still to come.
    form = {"generation": 1, "title": "Notes", "headings": ("Quay",), "buckets": [bucket_id]}
    put(daemon.provider, source_id, TEXTS[0].splitlines()[-1], team_id=daemon.team_id, **form)
    daemon.loop.call(lambda: daemon.context.wakes.note_unembedded(daemon.team_id))
    daemon.wait(lambda: shelf.first.batches == [1] and missing(daemon) == 0, "its passage has its vector")
    source = daemon.read(lambda connection: get_source(connection, daemon.team_id, source_id))
    active = replace(source, status=readiness.ACTIVE)
    daemon.write(lambda connection: update_state(connection, active))
    daemon.loop.call(lambda: daemon.context.wakes.note_unembedded(daemon.team_id))
    daemon.wait(lambda: daemon.count("vector_offers") == 0, "the used offer is gone")
    assert shelf.first.batches == [1]


@pytest.mark.rule("export.offers-refused")
def test_without_a_model_nothing_is_kept_and_while_it_is_loaded_what_may_fit(working: Daemon, shelf: Shelf) -> None:
    right = row(TEXTS[0], vector_of(TEXTS[0]))
    assert offer(working, right) == 0
    assert stored(working, working.add_ready(QUAY, title="Notes")) == {}
    shelf.failure = EmbedFailed("It is not there yet.")
    start_embedding(working, shelf)
    wait_state(working, "failing")
    # No model has so many dimensions, and such offers could fill the disk.
    assert offer(working, right, row(TEXTS[1], unit(1, 0, 0)), row("x", unit(1, *[0] * MOST_DIMENSIONS))) == 2
    shelf.failure = None
    wait_embedded(working)
    # The offer of another dimension was seen when the model was there.
    assert sum(shelf.first.batches) == 2
    assert working.show(OFFERS)["missing"] == 0


@pytest.mark.rule("export.offers-refused")
def test_an_offer_needs_its_rights_and_room(make_daemon: MakeDaemon, shelf: Shelf) -> None:
    daemon = make_daemon(limits=Limits(creates_per_second=0, offered_vectors=2))
    bucket_id = daemon.make_bucket()
    daemon.start("indexing", "syncing", "cascading")
    wait_opened(daemon, shelf)
    rows = [row(f"text {number}", vector_of("stone")) for number in range(3)]
    assert [offer(daemon, *rows), offer(daemon, rows[2])] == [2, 0]
    body = {"model": "words@1", "vectors": rows}
    reader, stranger = daemon.add_key("knowledge:read"), daemon.add_team()
    elsewhere = daemon.add_key(buckets=(daemon.make_bucket("other"),))
    for key, status in ((reader, 403), (stranger, 404), (elsewhere, 404)):
        assert daemon.ask("POST", OFFERS, key=key, json=body).status_code == status
    assert daemon.ask("GET", OFFERS, key=stranger).status_code == 404
    assert daemon.ask("POST", OFFERS, json=body | {"vectors": [{"text_sha256": "x", "vector": ""}]}).status_code == 400
    body_of(daemon.ask("DELETE", f"/v1/buckets/{bucket_id}", params={"force": "true"}))
    daemon.wait(lambda: daemon.count("vector_offers") == 0, "the offers went with their bucket")


def test_vectors_are_shown_only_with_the_text_in_the_index(working: Daemon, shelf: Shelf) -> None:
    source_id = working.add_ready(QUAY, title="Notes")
    path = f"/v1/sources/{source_id}/text"
    assert "vector" not in working.show(path)["chunks"][0]
    both = working.ask("GET", path, params={"vectors": "true", "verify": "content"})
    assert (both.status_code, both.json()["error"]["code"]) == (400, "invalid_request")
    shelf.first.gate.clear()
    start_embedding(working, shelf)
    wait_state(working, "ready")
    shown = working.show(path, vectors="true")
    assert (shown["model"], [each["vector"] for each in shown["chunks"]]) == ("words@1", [None, None])
    assert missing(working) == working.show(OFFERS)["missing"] == 2
    shelf.first.gate.set()
