"""The embedding worker: every chunk gets its vector, of the model in use alone, whatever fails meanwhile."""

import logging
import sqlite3
from collections.abc import Sequence
from contextlib import closing

import pytest

from svc_daemon.embed.contract import EmbedFailed
from svc_daemon.provider.errors import ProviderFailed
from svc_daemon.settings import Limits
from svc_daemon.workers import embedding
from svc_daemon.workers.embedding import BATCH, PLAIN
from tests.acceptance.installations import wait_until
from tests.api.answers import body_of
from tests.api.daemons import Daemon
from tests.api.fixtures import MakeDaemon
from tests.api.holds import PATIENCE_S
from tests.workers.rebuilds import begin, index_file, wait_rebuilt
from tests.workers.shelves import Shelf, ShelfModel, start_embedding

#: Cut into more chunks than one batch holds.
LONG = b"".join(b"# Part %d\n\nThe umber quay was built of grey stone.\n\n" % number for number in range(BATCH + 20))
HARBOUR = b"# Harbour\n\nThe umber pier was built in 1880.\n"


@pytest.fixture
def model() -> ShelfModel:
    return ShelfModel()


@pytest.fixture
def shelf(model: ShelfModel) -> Shelf:
    return Shelf(model)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses after failures take next to no time."""
    monkeypatch.setattr(embedding, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(embedding, "LONGEST_PAUSE_S", 0.02)
    monkeypatch.setattr(embedding, "LOOK_S", 0.01)


def missing(daemon: Daemon, model: str = "words@1", team_id: str | None = None) -> int:
    return daemon.provider.count_unembedded(team_id or daemon.team_id, model).missing


def chunks(daemon: Daemon) -> int:
    return daemon.provider.count_unembedded(daemon.team_id, "any").chunks


def wait_embedded(daemon: Daemon, model: str = "words@1", team_id: str | None = None) -> None:
    wait_until(lambda: missing(daemon, model, team_id) == 0, "every chunk has its vector", PATIENCE_S)


def wait_state(daemon: Daemon, state: str) -> str | None:
    """The message that goes with the state, once it is reached."""

    def told() -> dict[str, str | None] | None:
        now: dict[str, str | None] = body_of(daemon.ask("GET", "/healthz"))["embedding"]
        return now if now["state"] == state else None

    return wait_until(told, f"embedding is {state}", PATIENCE_S)["message"]


def found(daemon: Daemon, query: str, mode: str = "semantic") -> list[str]:
    return [result["filename"] for result in body_of(daemon.search(query, mode=mode))["data"]]


def test_a_source_is_ready_before_its_vectors_and_found_by_meaning_after(
    working: Daemon, shelf: Shelf, model: ShelfModel
) -> None:
    model.gate.clear()
    start_embedding(working, shelf)
    working.add_ready(HARBOUR, filename="harbour.md")
    assert found(working, "pier", "keyword") == ["harbour.md"]
    assert missing(working) == chunks(working) > 0
    model.gate.set()
    wait_embedded(working)
    assert found(working, "jetty") == ["harbour.md"]


def test_what_was_there_before_the_model_is_embedded_in_batches(
    working: Daemon, shelf: Shelf, model: ShelfModel
) -> None:
    working.add_ready(LONG)
    start_embedding(working, shelf)
    wait_embedded(working)
    assert model.batches[:2] == [BATCH, chunks(working) - BATCH]


def test_what_comes_later_is_embedded_when_it_comes(working: Daemon, shelf: Shelf) -> None:
    start_embedding(working, shelf)
    for number in range(3):
        working.add_ready(HARBOUR, filename=f"{number}.md")
        wait_embedded(working)
    assert sorted(found(working, "jetty")) == ["0.md", "1.md", "2.md"]


def test_teams_take_turns(working: Daemon, shelf: Shelf, model: ShelfModel) -> None:
    other = working.add_team()
    working.make_bucket("inbox", key=other)
    team_id = body_of(working.ask("GET", "/v1/buckets", key=other))["team_id"]
    working.add_ready(LONG)
    working.add_source(LONG, key=other)
    wait_until(lambda: missing(working, team_id=team_id), "the other team's document is in its index")
    start_embedding(working, shelf)
    wait_embedded(working)
    wait_embedded(working, team_id=team_id)
    assert model.batches[:2] == [BATCH, BATCH]


def test_a_stop_leaves_the_batch_for_the_next_start(working: Daemon, shelf: Shelf, model: ShelfModel) -> None:
    working.add_ready(LONG)
    model.gate.clear()
    start_embedding(working, shelf)
    wait_until(lambda: model.batches, "the first batch")
    working.stop()
    assert model.is_closed
    assert missing(working) == chunks(working)
    shelf.model = ShelfModel()
    start_embedding(working, shelf)
    wait_embedded(working)


def test_a_deleted_source_leaves_no_vector(working: Daemon, shelf: Shelf, model: ShelfModel) -> None:
    kept = working.add_ready(HARBOUR, filename="kept.md")
    gone = working.add_ready(HARBOUR, filename="gone.md")
    model.gate.clear()
    start_embedding(working, shelf)
    wait_until(lambda: model.batches, "the batch with both")
    body_of(working.ask("DELETE", f"/v1/sources/{gone}"))
    wait_until(lambda: working.provider.get_document(working.team_id, gone) is None, "it is out of the index")
    model.gate.set()
    wait_embedded(working)
    assert working.found("jetty", mode="semantic") == [kept]
    assert stored(working) == chunks(working)


def stored(daemon: Daemon) -> int:
    """Vectors in the index file, of whatever model."""
    with closing(sqlite3.connect(f"file:{index_file(daemon)}?mode=ro", uri=True)) as connection:
        return int(connection.execute("SELECT count(*) FROM vectors").fetchone()[0])


def test_another_model_takes_over_and_nothing_is_left_of_the_first(
    working: Daemon, shelf: Shelf, model: ShelfModel
) -> None:
    working.add_ready(LONG)
    start_embedding(working, shelf)
    wait_embedded(working)
    second = ShelfModel("words@2")
    second.gate.clear()
    shelf.model = second
    look(working)
    wait_until(lambda: second.batches, "the first batch of the second model")
    assert model.is_closed
    # Nothing answers by the first model's vectors, and none of them is left.
    assert found(working, "granite stone") == []
    assert stored(working) == 0
    second.gate.set()
    wait_embedded(working, "words@2")
    assert found(working, "granite stone")
    assert stored(working) == chunks(working)


def look(daemon: Daemon) -> None:
    """What `svc-daemon model install` does in the end."""
    body_of(daemon.ask("POST", "/admin/model", key=daemon.operator_token))


def test_without_a_model_searches_go_by_keyword_until_there_is_one(
    working: Daemon, shelf: Shelf, model: ShelfModel
) -> None:
    shelf.model = None
    start_embedding(working, shelf)
    working.add_ready(HARBOUR, filename="harbour.md")
    wait_state(working, "off")
    page = body_of(working.search("pier", mode="semantic"))
    assert [result["filename"] for result in page["data"]] == ["harbour.md"]
    assert "no embedding model" in page["warnings"][0]
    shelf.model = model
    look(working)
    wait_embedded(working)
    wait_state(working, "ready")
    assert found(working, "jetty") == ["harbour.md"]
    shelf.model = None
    look(working)
    wait_state(working, "off")
    assert found(working, "pier", "hybrid") == ["harbour.md"]


def test_a_model_that_is_another_by_now_is_opened_anew(working: Daemon, shelf: Shelf, model: ShelfModel) -> None:
    working.add_ready(HARBOUR)
    start_embedding(working, shelf)
    wait_embedded(working)
    # As after a server was given another one: nothing that the operator chose has changed.
    shelf.next = ShelfModel("words@2")
    model.is_stale = True
    look(working)
    wait_embedded(working, "words@2")


def test_a_query_that_finds_out_about_another_model_has_it_opened_at_once(
    working: Daemon, shelf: Shelf, model: ShelfModel
) -> None:
    working.add_ready(HARBOUR)
    start_embedding(working, shelf)
    wait_embedded(working)
    wait_state(working, "ready")
    shelf.next = ShelfModel("words@2")
    model.is_stale, model.failure = True, EmbedFailed("another model")
    assert found(working, "umber", "hybrid") == ["notes.md"]
    wait_embedded(working, "words@2")


@pytest.mark.usefixtures("quick")
def test_a_failing_model_pauses_says_so_once_and_goes_on(
    working: Daemon, shelf: Shelf, model: ShelfModel, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger=embedding.__name__)
    working.add_ready(LONG, filename="long.md")
    model.failure = EmbedFailed("The server sleeps.")
    start_embedding(working, shelf)
    assert wait_state(working, "failing") == "The server sleeps."
    wait_until(lambda: len(model.batches) > 5, "it is tried again")
    assert "The server sleeps." in body_of(working.search("quay"))["warnings"][0]
    model.failure = None
    wait_embedded(working)
    wait_state(working, "ready")
    messages = [record.getMessage() for record in caplog.records]
    assert messages.count("embedding pauses: The server sleeps.") == 1
    assert messages.count("embedding goes on") == 1
    assert not [message for message in messages if "found by its words only" in message]


@pytest.mark.usefixtures("quick")
def test_a_model_that_can_not_be_opened_is_tried_again(working: Daemon, shelf: Shelf, model: ShelfModel) -> None:
    working.add_ready(HARBOUR, filename="harbour.md")
    shelf.failure = EmbedFailed("No such model.")
    start_embedding(working, shelf)
    assert wait_state(working, "failing") == "No such model."
    page = body_of(working.search("pier"))
    assert (page["data"][0]["filename"], page["warnings"]) == (
        "harbour.md",
        ["The search went by keyword alone: No such model."],
    )
    shelf.failure, model.start_failure = None, EmbedFailed("It does not load.")
    wait_until(lambda: model.starts > 1, "it is started more than once")
    model.start_failure = None
    wait_embedded(working)
    wait_state(working, "ready")


@pytest.mark.usefixtures("quick")
def test_one_chunk_that_the_model_can_not_take_keeps_no_other_from_its_vector(
    working: Daemon, shelf: Shelf, model: ShelfModel, caplog: pytest.LogCaptureFixture
) -> None:
    working.add_ready(LONG)
    working.add_ready(b"# Poison\n\nThe poisoned apple.\n", filename="poison.md")
    working.add_ready(HARBOUR, filename="harbour.md")

    def choke(texts: Sequence[str]) -> None:
        if any("poisoned" in text for text in texts):
            raise EmbedFailed("It choked.")

    model.on_batch = choke
    start_embedding(working, shelf)
    wait_until(lambda: missing(working) == 1, "all but one have their vector", PATIENCE_S)
    wait_state(working, "ready")
    assert "found by its words only, the model can't embed it: It choked." in caplog.text
    assert found(working, "poisoned", "keyword") == ["poison.md"]
    working.add_ready(HARBOUR, filename="later.md")
    wait_until(lambda: missing(working) == 1, "what comes later has its vector, too", PATIENCE_S)


@pytest.mark.usefixtures("quick")
def test_a_model_is_well_again_without_anything_to_embed(working: Daemon, shelf: Shelf, model: ShelfModel) -> None:
    source_id = working.add_ready(HARBOUR)
    model.failure = EmbedFailed("The server sleeps.")
    start_embedding(working, shelf)
    wait_state(working, "failing")
    body_of(working.ask("DELETE", f"/v1/sources/{source_id}"))
    model.failure = None
    wait_state(working, "ready")


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("verb", ["warm_up", "put_vectors"])
def test_an_index_in_trouble_is_tried_again(
    working: Daemon, shelf: Shelf, caplog: pytest.LogCaptureFixture, verb: str
) -> None:
    working.add_ready(HARBOUR)
    working.provider.fail(verb, ProviderFailed("The disk is full.", retryable=True), times=3)
    start_embedding(working, shelf)
    wait_embedded(working)
    assert caplog.text.count("can't be stored") == 3
    wait_state(working, "ready")


def test_vectors_leave_the_reserve_of_the_disk_to_deletes(
    make_daemon: MakeDaemon, shelf: Shelf, model: ShelfModel, caplog: pytest.LogCaptureFixture
) -> None:
    daemon = make_daemon()
    daemon.start("indexing", "syncing")
    daemon.make_bucket()
    daemon.add_ready(HARBOUR)
    daemon.close()
    full = make_daemon(limits=Limits(creates_per_second=0, free_disk_bytes=2**62))
    start_embedding(full, shelf)
    wait_until(lambda: "The disk is nearly full" in caplog.text, "the log tells of the disk", PATIENCE_S)
    assert (model.batches, stored(full), found(full, "umber", "hybrid")) == ([], 0, ["notes.md"])


def test_an_index_that_is_made_anew_gets_its_vectors_again(working: Daemon, shelf: Shelf) -> None:
    working.add_ready(LONG)
    start_embedding(working, shelf)
    wait_embedded(working)
    before = chunks(working)
    wait_rebuilt(working, begin(working))
    wait_embedded(working)
    assert stored(working) == chunks(working) == before


def test_pieces_of_another_size_get_their_vectors(working: Daemon, shelf: Shelf) -> None:
    start_embedding(working, shelf)
    working.add_ready(b"# Quays\n\n" + b"The umber quay was built of grey stone. " * 120)
    wait_embedded(working)
    before = chunks(working)
    body_of(working.ask("PATCH", "/v1/buckets/inbox", json={"chunking": {"target": 250, "min": 200, "max": 300}}))
    wait_until(lambda: chunks(working) > before, "it is rechunked", PATIENCE_S)
    wait_embedded(working)


@pytest.mark.usefixtures("quick")
def test_what_nobody_foresaw_is_told_and_tried_again(
    working: Daemon, shelf: Shelf, model: ShelfModel, caplog: pytest.LogCaptureFixture
) -> None:
    def crash(_: Sequence[str]) -> None:
        raise RuntimeError("unforeseen")

    model.on_batch = crash
    working.add_ready(HARBOUR)
    start_embedding(working, shelf)
    assert "the log has the error" in (wait_state(working, "failing") or "")
    assert "unforeseen" in caplog.text
    model.on_batch = lambda _: None
    wait_embedded(working)
    wait_state(working, "ready")


@pytest.mark.usefixtures("quick")
def test_a_plain_sentence_is_asked_before_a_chunk_is_given_up(working: Daemon, shelf: Shelf, model: ShelfModel) -> None:
    working.add_ready(HARBOUR)
    asked: list[str] = []

    def note(texts: Sequence[str]) -> None:
        asked.extend(texts)
        if len(asked) < 4:
            raise EmbedFailed("Not yet.")

    model.on_batch = note
    start_embedding(working, shelf)
    wait_embedded(working)
    assert asked[1:4] == [PLAIN] * 3
