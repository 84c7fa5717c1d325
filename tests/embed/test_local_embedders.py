"""The model in a process of its own: the same vectors, and nothing that it does can harm who asked."""

import math
import os
import re
import signal
import struct
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from svc_daemon.embed import local_embedders
from svc_daemon.embed.contract import EmbedFailed
from svc_daemon.embed.installed_models import InstalledModel, ModelFolder
from svc_daemon.embed.local_embedders import LocalEmbedder
from svc_daemon.embed.onnx_inference import Runtime
from svc_daemon.wire.light.extras import install_command
from tests.acceptance.installations import PATIENCE_S, wait_until
from tests.processes import children_of, has_ended

Open = Callable[..., LocalEmbedder]
Children = Callable[[], list[psutil.Process]]
Stuck = tuple[LocalEmbedder, psutil.Process]
TEXTS = ["a short one", "b", "a longer text that comes in the middle of all the others", "a short one"]


@pytest.fixture
def open_embedder(tiny_folder: ModelFolder, tiny_model: InstalledModel, tmp_path: Path) -> Iterator[Open]:
    """Open the tiny model, or another record of it."""
    opened: list[LocalEmbedder] = []

    def open_one(model: InstalledModel = tiny_model, **options: Callable[[], float]) -> LocalEmbedder:
        opened.append(LocalEmbedder(tiny_folder, model, threads=2, error_log=tmp_path / "errors", **options))
        return opened[-1]

    yield open_one
    for embedder in opened:
        embedder.close()


@pytest.fixture(scope="module")
def unharmed(tiny_folder: ModelFolder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEmbedder]:
    """One for all tests that only ask it."""
    errors = tmp_path_factory.mktemp("one") / "errors"
    embedder = LocalEmbedder(tiny_folder, tiny_folder.get(), threads=2, error_log=errors)
    embedder.start()
    yield embedder
    embedder.close()


def process_of(embedder: LocalEmbedder) -> psutil.Process:
    assert embedder.pid is not None
    return psutil.Process(embedder.pid)


@pytest.fixture
def children(unharmed: LocalEmbedder) -> Children:
    """Processes of models that run beside the one for all."""

    def living() -> list[psutil.Process]:
        models = children_of(None, "svc_daemon.embed.model_process")
        return [child for child in models if child.pid != unharmed.pid and not has_ended(child)]

    return living


@pytest.fixture
def stuck(open_embedder: Open, children: Children) -> Stuck:
    """One with its model loaded, whose process then does nothing any more."""
    embedder = open_embedder()
    embedder.start()
    (child,) = children()
    child.suspend()
    return embedder, child


def test_vectors_come_in_order_and_are_those_of_the_runtime(
    unharmed: LocalEmbedder, tiny_folder: ModelFolder, tiny_model: InstalledModel
) -> None:
    runtime = Runtime(tiny_folder.folder_of(tiny_model), max_tokens=tiny_model.max_tokens, pooling=tiny_model.pooling)
    vectors = unharmed.embed(TEXTS)
    assert vectors == [runtime.embed(text) for text in TEXTS]
    for vector in vectors:
        assert math.hypot(*struct.unpack(f"<{unharmed.dimension}f", vector)) == pytest.approx(1, abs=1e-5)
    assert unharmed.embed_query(TEXTS[2], None) == vectors[2]
    assert unharmed.embed([]) == []
    assert (unharmed.model, unharmed.is_stale) == (tiny_model.model, False)


def test_many_threads_get_each_their_own(unharmed: LocalEmbedder) -> None:
    alone = {text: unharmed.embed_query(text, None) for text in (f"number {n}" for n in range(24))}
    with ThreadPoolExecutor(8) as pool:
        together = dict(zip(alone, pool.map(lambda text: unharmed.embed_query(text, None), alone), strict=True))
        batch = pool.submit(unharmed.embed, list(alone)).result()
    assert (together, batch) == (alone, list(alone.values()))


def test_the_process_is_alone_and_polite_and_deaf_to_a_stop_of_the_daemon(unharmed: LocalEmbedder) -> None:
    child = process_of(unharmed)
    assert (child.environ(), child.cwd(), os.getsid(child.pid)) == ({}, "/", child.pid)
    assert child.rlimit(psutil.RLIMIT_CORE) == (0, 0)
    assert int(Path(f"/proc/{child.pid}/oom_score_adj").read_text()) == 500
    links = Path(f"/proc/{child.pid}/fd").iterdir()
    assert [link.name for link in links if str(link.readlink()).startswith("socket:")] == ["0"]
    own = psutil.Process().nice()
    niceness = sorted(os.getpriority(os.PRIO_PROCESS, thread.id) for thread in child.threads())
    assert (niceness[0], niceness.count(min(own + 15, 19))) == (own, 2)
    child.send_signal(signal.SIGTERM)
    child.send_signal(signal.SIGINT)
    assert unharmed.embed(TEXTS)
    assert process_of(unharmed) == child


def test_a_process_that_dies_fails_what_it_was_asked_and_is_replaced(open_embedder: Open, children: Children) -> None:
    embedder = open_embedder()
    before = embedder.embed(TEXTS)
    (child,) = children()
    child.suspend()
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(embedder.embed, TEXTS)
        child.kill()
        with pytest.raises(EmbedFailed, match="ended"):
            asked.result(PATIENCE_S)
    assert embedder.embed(TEXTS) == before
    assert children() != [child]


def test_one_that_keeps_dying_is_started_after_ever_longer_pauses(open_embedder: Open, children: Children) -> None:
    now_s = [1000.0]
    embedder = open_embedder(monotonic=lambda: now_s[0])

    def die() -> None:
        (child,) = children()
        child.kill()
        wait_until(lambda: embedder.pid is None, "the death is noticed")

    for pause_s in (1.0, 2.0):
        embedder.start()
        die()
        for wait_s in (0, pause_s - 0.01):
            now_s[0] += wait_s
            for ask in (embedder.start, lambda: embedder.embed_query("x", None)):
                with pytest.raises(EmbedFailed, match="another is started in a moment"):
                    ask()
        now_s[0] += 0.01
    embedder.embed(["it works again"])
    die()
    embedder.start()


def test_a_query_is_given_up_at_its_deadline(stuck: Stuck) -> None:
    embedder, child = stuck
    with ThreadPoolExecutor(1) as pool:
        failed = pool.submit(embedder.embed_query, "x", time.monotonic() + 0.2).exception(PATIENCE_S)
    assert isinstance(failed, EmbedFailed) and "not embedded in time" in str(failed)
    child.resume()
    assert embedder.embed_query("x", None)
    with pytest.raises(EmbedFailed):
        embedder.embed_query("x", time.monotonic() - 1)


def test_a_batch_that_takes_for_ever_ends_the_process(stuck: Stuck, monkeypatch: pytest.MonkeyPatch) -> None:
    embedder, child = stuck
    monkeypatch.setattr(local_embedders, "PATIENCE_S", 0.1)
    monkeypatch.setattr("svc_daemon.child_processes.STOP_S", 0.1)
    with pytest.raises(EmbedFailed, match="did not answer within"):
        embedder.embed(TEXTS)
    assert has_ended(child)


@pytest.fixture
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second is the least that the socket can wait; it is set when the process is started."""
    monkeypatch.setattr(local_embedders, "QUERY_PATIENCE_S", 1.0)


def test_queries_before_a_process_that_hangs_are_bounded_and_end_it(short_patience: None, stuck: Stuck) -> None:
    embedder, child = stuck

    def ask() -> bool:
        # Soon there are more than the socket holds.
        with suppress(EmbedFailed):
            embedder.embed_query("x" * 100_000, time.monotonic() + 0.05)
        return has_ended(child)

    wait_until(ask, "its end")
    assert len(embedder.embed(TEXTS)) == len(TEXTS)


def test_a_query_without_an_answer_ends_the_process(stuck: Stuck, monkeypatch: pytest.MonkeyPatch) -> None:
    embedder, child = stuck
    with pytest.raises(EmbedFailed, match="not embedded in time"):
        embedder.embed_query("x", time.monotonic() + 0.1)
    monkeypatch.setattr(local_embedders, "QUERY_PATIENCE_S", 0.05)
    with pytest.raises(EmbedFailed, match="ended"):
        embedder.embed_query("x", time.monotonic() + 30)
    wait_until(lambda: has_ended(child), "its end")


def test_a_query_does_not_wait_for_a_model_that_loads_for_ever(
    open_embedder: Open, children: Children, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = open_embedder()
    with ThreadPoolExecutor(1) as pool:
        starting = pool.submit(embedder.start)
        (child,) = wait_until(children, "the process")
        child.suspend()
        with pytest.raises(EmbedFailed, match="is being loaded"):
            embedder.embed_query("x", time.monotonic() + 0.1)
        monkeypatch.setattr(local_embedders, "PATIENCE_S", 0.05)
        with pytest.raises(EmbedFailed, match="not loaded within"):
            embedder.embed_query("x", time.monotonic() + 0.1)
        with pytest.raises(EmbedFailed):
            starting.result(PATIENCE_S)
    wait_until(lambda: has_ended(child), "its end")


def test_closing_ends_the_process_and_what_it_does(stuck: Stuck) -> None:
    embedder, child = stuck
    with ThreadPoolExecutor(2) as pool:
        asked, closing = pool.submit(embedder.embed, TEXTS), pool.submit(embedder.close)
        with pytest.raises(EmbedFailed):
            asked.result(PATIENCE_S)
        with suppress(psutil.NoSuchProcess):  # closing kills a process that takes too long to end
            child.resume()
        closing.result(PATIENCE_S)
    assert has_ended(child)
    with pytest.raises(EmbedFailed, match="no longer in use"):
        embedder.embed_query("x", None)


def test_one_that_is_loading_can_be_closed(open_embedder: Open, children: Children) -> None:
    embedder = open_embedder()
    with ThreadPoolExecutor(1) as pool:
        starting = pool.submit(embedder.start)
        wait_until(children, "the process")
        embedder.close()
        # It may just have been ready.
        assert starting.exception(PATIENCE_S) is None or isinstance(starting.exception(), EmbedFailed)
    assert children() == []


def test_a_damaged_model_or_a_missing_library_is_reported_and_starts_nothing(
    open_embedder: Open, children: Children, tiny_model: InstalledModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged = replace(tiny_model, files={**tiny_model.files, "model.onnx": "0" * 64})
    with pytest.raises(EmbedFailed, match="is damaged: not the bytes that were written"):
        open_embedder(damaged).start()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(EmbedFailed, match=re.escape(f"numpy is not installed. Run {install_command('semantic')} in")):
        open_embedder().start()
    assert children() == []
