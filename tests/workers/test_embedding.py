"""Tests the embedding worker: each chunk gets a vector of the current model, in spite of failures."""

import logging
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from unittest.mock import Mock

import pytest

from svc_daemon.embed.contract import EmbedFailed
from svc_daemon.provider.errors import ProviderFailed
from svc_daemon.settings.limits import Limits
from svc_daemon.workers import embedding
from svc_daemon.workers.embedding import BATCH, PLAIN
from tests.acceptance.installations import wait_until
from tests.api.answers import body_of
from tests.api.daemons import Daemon
from tests.api.fixtures import MakeDaemon
from tests.workers.rebuilds import LONG as QUAYS
from tests.workers.rebuilds import begin, delete, index_file, wait_rebuilt
from tests.workers.shelves import Shelf, ShelfModel, start_embedding

#: Long enough for more chunks than one batch holds.
LONG = b"".join(b"# Part %d\n\nThe umber quay was built of grey stone.\n\n" % number for number in range(BATCH + 20))
HARBOUR = b"# Harbour\n\nThe umber pier was built in 1880.\n"


def missing(daemon: Daemon, model: str = "words@1", team_id: str | None = None) -> int:
    return daemon.provider.count_unembedded(team_id or daemon.team_id, model).missing


def chunks(daemon: Daemon) -> int:
    return daemon.provider.count_unembedded(daemon.team_id, "any").chunks


def stored(daemon: Daemon) -> int:
    """Return the number of vectors in the index file, of any model."""
    with closing(sqlite3.connect(f"file:{index_file(daemon)}?mode=ro", uri=True)) as connection:
        return int(connection.execute("SELECT count(*) FROM vectors").fetchone()[0])


def wait_embedded(daemon: Daemon, model: str = "words@1", team_id: str | None = None) -> None:
    daemon.wait(lambda: missing(daemon, model, team_id) == 0, "every chunk has its vector")


def wait_state(daemon: Daemon, state: str) -> str | None:
    """Wait until embedding is in this state, and return the message of the state."""

    def reached() -> dict[str, str | None] | None:
        now: dict[str, str | None] = daemon.show("/healthz")["embedding"]
        return now if now["state"] == state else None

    return wait_until(reached, f"embedding is {state}")["message"]


def found(daemon: Daemon, query: str, mode: str = "semantic") -> list[str]:
    return [result["filename"] for result in body_of(daemon.search(query, mode=mode))["data"]]


def look(daemon: Daemon) -> None:
    """Make the daemon check for another model, as `svc-daemon model install` does."""
    body_of(daemon.ask("POST", "/admin/model", key=daemon.operator_token))


def test_a_source_is_ready_before_its_vectors_and_found_by_meaning_after(working: Daemon, shelf: Shelf) -> None:
    shelf.first.gate.clear()
    start_embedding(working, shelf)
    working.add_ready(HARBOUR, filename="0.md")
    assert found(working, "pier", "keyword") == ["0.md"]
    assert missing(working) == chunks(working) > 0
    shelf.first.gate.set()
    wait_embedded(working)
    assert found(working, "jetty") == ["0.md"]
    for number in (1, 2):
        working.add_ready(HARBOUR, filename=f"{number}.md")
        wait_embedded(working)
    assert sorted(found(working, "jetty")) == ["0.md", "1.md", "2.md"]


def test_the_worker_alternates_between_teams(working: Daemon, shelf: Shelf) -> None:
    other = working.add_team()
    working.make_bucket("inbox", key=other)
    team_id = working.show("/v1/buckets", key=other)["team_id"]
    working.add_ready(LONG)
    working.add_source(LONG, key=other)
    working.wait(lambda: missing(working, team_id=team_id) > 0, "the other team's document is in its index")
    start_embedding(working, shelf)
    wait_embedded(working)
    wait_embedded(working, team_id=team_id)
    assert shelf.first.batches[:2] == [BATCH, BATCH]


@pytest.mark.index_files
def test_a_new_model_replaces_all_vectors_of_the_first(working: Daemon, shelf: Shelf) -> None:
    working.add_ready(LONG)
    start_embedding(working, shelf)
    wait_embedded(working)
    shelf.model = second = ShelfModel("words@2")
    second.gate.clear()
    look(working)
    working.wait(lambda: bool(second.batches), "the second model gets a batch")
    assert shelf.first.is_closed
    # No search uses the first model's vectors, and all of them are deleted.
    assert (found(working, "granite stone"), stored(working)) == ([], 0)
    second.gate.set()
    wait_embedded(working, "words@2")
    assert found(working, "granite stone") and stored(working) == chunks(working)


def test_searches_use_keywords_only_while_there_is_no_model(working: Daemon, shelf: Shelf) -> None:
    shelf.model = None
    start_embedding(working, shelf)
    working.add_ready(HARBOUR, filename="harbour.md")
    wait_state(working, "off")
    assert found(working, "pier") == ["harbour.md"]
    assert "no embedding model" in body_of(working.search("pier", mode="semantic"))["warnings"][0]
    shelf.model = shelf.first
    look(working)
    wait_embedded(working)
    wait_state(working, "ready")
    assert found(working, "jetty") == ["harbour.md"]
    shelf.model = None
    look(working)
    wait_state(working, "off")
    assert found(working, "pier", "hybrid") == ["harbour.md"]


def test_a_model_that_has_become_stale_is_opened_again(working: Daemon, shelf: Shelf) -> None:
    """A server may load another model although the operator's choice has not changed."""
    working.add_ready(HARBOUR)
    start_embedding(working, shelf)
    wait_embedded(working)
    shelf.next = second = ShelfModel("words@2")
    shelf.first.is_stale = True
    look(working)
    wait_embedded(working, "words@2")
    wait_state(working, "ready")
    # A query that notices the change causes the model to be opened again at once.
    shelf.next = ShelfModel("words@3")
    second.is_stale, second.failure = True, EmbedFailed("another model")
    assert found(working, "umber", "hybrid") == ["notes.md"]
    wait_embedded(working, "words@3")


def test_embedding_pauses_while_the_model_fails_and_logs_the_pause_once(
    working: Daemon, shelf: Shelf, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger=embedding.__name__)
    working.add_ready(LONG, filename="long.md")
    shelf.first.failure = EmbedFailed("The server sleeps.")
    start_embedding(working, shelf)
    assert wait_state(working, "failing") == "The server sleeps."
    working.wait(lambda: len(shelf.first.batches) > 5, "the model is retried")
    assert "The server sleeps." in body_of(working.search("quay"))["warnings"][0]
    shelf.first.failure = None
    wait_embedded(working)
    wait_state(working, "ready")
    messages = [record.getMessage() for record in caplog.records]
    assert messages.count("embedding pauses: The server sleeps.") == messages.count("embedding continues") == 1
    assert not [message for message in messages if "found by its words only" in message]


def test_opening_and_starting_a_model_is_retried(working: Daemon, shelf: Shelf) -> None:
    working.add_ready(HARBOUR, filename="harbour.md")
    shelf.failure = EmbedFailed("No such model.")
    start_embedding(working, shelf)
    assert wait_state(working, "failing") == "No such model."
    page = body_of(working.search("pier"))
    assert page["data"][0]["filename"] == "harbour.md"
    assert page["warnings"] == ["The search used keywords only: No such model."]
    shelf.failure, shelf.first.start_failure = None, EmbedFailed("It does not load.")
    working.wait(lambda: shelf.first.starts > 1, "the model is started more than once")
    shelf.first.start_failure = None
    wait_embedded(working)
    wait_state(working, "ready")


def test_a_chunk_that_the_model_cannot_embed_does_not_block_other_chunks(
    working: Daemon, shelf: Shelf, caplog: pytest.LogCaptureFixture
) -> None:
    working.add_ready(LONG)
    working.add_ready(b"# Poison\n\nThe poisoned apple.\n", filename="poison.md")
    working.add_ready(HARBOUR, filename="harbour.md")

    def choke(texts: Sequence[str]) -> None:
        if any("poisoned" in text for text in texts):
            raise EmbedFailed("It choked.")

    shelf.first.on_batch = choke
    start_embedding(working, shelf)
    working.wait(lambda: missing(working) == 1, "all chunks but one have their vectors")
    wait_state(working, "ready")
    assert "found by keyword only, since the model can't embed it: It choked." in caplog.text
    assert found(working, "poisoned", "keyword") == ["poison.md"]
    working.add_ready(HARBOUR, filename="later.md")
    working.wait(lambda: missing(working) == 1, "the later chunk has its vector, too")


def test_a_model_becomes_ready_again_even_with_no_chunks_to_embed(working: Daemon, shelf: Shelf) -> None:
    source_id = working.add_ready(HARBOUR)
    shelf.first.failure = EmbedFailed("The server sleeps.")
    start_embedding(working, shelf)
    wait_state(working, "failing")
    delete(working, source_id)
    shelf.first.failure = None
    wait_state(working, "ready")


def test_a_failing_index_is_retried(working: Daemon, shelf: Shelf, caplog: pytest.LogCaptureFixture) -> None:
    trouble = ProviderFailed("The disk is full.", retryable=True)
    working.provider.fail("warm_up", trouble, times=3)
    start_embedding(working, shelf)
    for verb in ("warm_up", "put_vectors"):
        working.add_ready(HARBOUR)
        working.wait(lambda: caplog.text.count("can't be stored") == 3, f"{verb} has failed three times")
        wait_embedded(working)
        wait_state(working, "ready")
        caplog.clear()
        working.provider.fail("put_vectors", trouble, times=3)


@pytest.mark.index_files
@pytest.mark.folders
def test_no_vectors_are_computed_below_the_disk_reserve(
    make_daemon: MakeDaemon, shelf: Shelf, caplog: pytest.LogCaptureFixture
) -> None:
    daemon = make_daemon()
    daemon.start("indexing", "syncing")
    daemon.make_bucket()
    daemon.add_ready(HARBOUR)
    daemon.close()
    full = make_daemon(limits=Limits(creates_per_second=0, free_disk_bytes=2**62))
    start_embedding(full, shelf)
    full.wait(lambda: "The disk is nearly full" in caplog.text, "the log names the disk")
    assert (shelf.first.batches, stored(full), found(full, "umber", "hybrid")) == ([], 0, ["notes.md"])


@pytest.mark.index_files
def test_chunks_of_a_rebuild_and_of_a_new_chunking_get_vectors(working: Daemon, shelf: Shelf) -> None:
    working.add_ready(QUAYS)
    start_embedding(working, shelf)
    wait_embedded(working)
    before = chunks(working)
    wait_rebuilt(working, begin(working))
    wait_embedded(working)
    assert stored(working) == chunks(working) == before
    working.patch("/v1/buckets/inbox", chunking={"target": 250, "min": 200, "max": 300})
    working.wait(lambda: chunks(working) > before, "it is rechunked")
    wait_embedded(working)


def test_an_unexpected_error_is_logged_and_the_batch_is_retried(
    working: Daemon, shelf: Shelf, caplog: pytest.LogCaptureFixture
) -> None:
    shelf.first.on_batch = Mock(side_effect=RuntimeError("unforeseen"))
    working.add_ready(HARBOUR)
    start_embedding(working, shelf)
    assert "the log shows the error" in (wait_state(working, "failing") or "") and "unforeseen" in caplog.text
    shelf.first.on_batch = lambda _: None
    wait_embedded(working)
    wait_state(working, "ready")


def test_after_a_failed_batch_the_model_is_tested_with_a_plain_sentence(working: Daemon, shelf: Shelf) -> None:
    working.add_ready(HARBOUR)
    asked: list[str] = []

    def note(texts: Sequence[str]) -> None:
        asked.extend(texts)
        if len(asked) < 4:
            raise EmbedFailed("Not yet.")

    shelf.first.on_batch = note
    start_embedding(working, shelf)
    wait_embedded(working)
    assert asked[1:4] == [PLAIN] * 3
