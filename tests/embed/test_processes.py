"""The model in a process of its own: the same vectors, and nothing that it does can harm who asked."""

import math
import os
import signal
import struct
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from svc_daemon.embed import processes
from svc_daemon.embed.contract import EmbedFailed
from svc_daemon.embed.models import InstalledModel, ModelFolder
from svc_daemon.embed.processes import LocalEmbedder
from svc_daemon.embed.runtimes import Runtime
from tests.acceptance.installations import wait_until
from tests.embed.processes import has_ended

Open = Callable[..., LocalEmbedder]
Children = Callable[[], list[psutil.Process]]
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
    embedder = LocalEmbedder(
        tiny_folder, tiny_folder.get(), threads=2, error_log=tmp_path_factory.mktemp("one") / "errors"
    )
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
        mine = (child for child in psutil.Process().children() if not has_ended(child) and child.pid != unharmed.pid)
        return [child for child in mine if "svc_daemon.embed.children" in child.cmdline()]

    return living


def open_stuck(open_embedder: Open, children: Children) -> tuple[LocalEmbedder, psutil.Process]:
    """One with its model loaded, whose process then does nothing any more."""
    embedder = open_embedder()
    embedder.start()
    (child,) = children()
    child.suspend()
    return embedder, child


def test_vectors_come_in_order_and_are_those_of_the_runtime(
    unharmed: LocalEmbedder, tiny_folder: ModelFolder, tiny_model: InstalledModel
) -> None:
    embedder = unharmed
    runtime = Runtime(tiny_folder.folder_of(tiny_model), max_tokens=tiny_model.max_tokens, pooling=tiny_model.pooling)
    vectors = embedder.embed(TEXTS)
    assert vectors == [runtime.embed(text) for text in TEXTS]
    assert [len(vector) for vector in vectors] == [4 * embedder.dimension] * len(TEXTS)
    for vector in vectors:
        assert math.hypot(*struct.unpack(f"<{embedder.dimension}f", vector)) == pytest.approx(1, abs=1e-5)
    assert embedder.embed_query(TEXTS[2], None) == vectors[2]
    assert embedder.embed([]) == []
    assert (embedder.model, embedder.is_stale) == (tiny_model.model, False)


def test_many_threads_get_each_their_own(unharmed: LocalEmbedder) -> None:
    embedder = unharmed
    alone = {text: embedder.embed_query(text, None) for text in (f"number {n}" for n in range(24))}
    with ThreadPoolExecutor(8) as pool:
        together = dict(zip(alone, pool.map(lambda text: embedder.embed_query(text, None), alone), strict=True))
        batch = pool.submit(embedder.embed, list(alone)).result()
    assert together == alone
    assert batch == list(alone.values())


def test_the_process_is_alone_and_polite(unharmed: LocalEmbedder) -> None:
    child = process_of(unharmed)
    assert child.environ() == {}
    assert child.cwd() == "/"
    assert os.getsid(child.pid) == child.pid
    assert child.rlimit(psutil.RLIMIT_CORE) == (0, 0)
    assert int(Path(f"/proc/{child.pid}/oom_score_adj").read_text()) == 500
    sockets = [
        link.name for link in Path(f"/proc/{child.pid}/fd").iterdir() if str(link.readlink()).startswith("socket:")
    ]
    assert sockets == ["0"]
    own = psutil.Process().nice()
    niceness = sorted(os.getpriority(os.PRIO_PROCESS, thread.id) for thread in child.threads())
    assert niceness.count(min(own + 15, 19)) == 2
    assert niceness[0] == own


def test_a_stop_that_is_meant_for_the_daemon_does_not_end_it(unharmed: LocalEmbedder) -> None:
    child = process_of(unharmed)
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
            asked.result(30)
    assert embedder.embed(TEXTS) == before
    assert children() != [child]


def test_one_that_keeps_dying_is_started_after_longer_and_longer_pauses(
    open_embedder: Open, children: Children
) -> None:
    now_s = [1000.0]
    embedder = open_embedder(monotonic=lambda: now_s[0])

    def dies() -> None:
        embedder.start()
        (child,) = children()
        child.kill()
        wait_until(lambda: embedder.pid is None, "the death is noticed")

    dies()
    for pause_s in (1.0, 2.0):
        with pytest.raises(EmbedFailed, match="another is started in a moment"):
            embedder.start()
        now_s[0] += pause_s - 0.01
        with pytest.raises(EmbedFailed, match="another is started in a moment"):
            embedder.embed_query("x", None)
        now_s[0] += 0.01
        dies()
    now_s[0] += 4
    embedder.embed(["it works again"])
    (child,) = children()
    child.kill()
    wait_until(lambda: embedder.pid is None, "the death is noticed")
    embedder.start()


def test_a_query_is_given_up_at_its_deadline(open_embedder: Open, children: Children) -> None:
    embedder, child = open_stuck(open_embedder, children)
    with ThreadPoolExecutor(1) as pool:
        failed = pool.submit(embedder.embed_query, "x", time.monotonic() + 0.2).exception(timeout=5)
    assert isinstance(failed, EmbedFailed)
    assert "not embedded in time" in str(failed)
    child.resume()
    assert embedder.embed_query("x", None)
    with pytest.raises(EmbedFailed):
        embedder.embed_query("x", time.monotonic() - 1)


def test_a_batch_that_takes_for_ever_ends_the_process(
    open_embedder: Open, children: Children, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder, child = open_stuck(open_embedder, children)
    monkeypatch.setattr(processes, "PATIENCE_S", 0.1)
    monkeypatch.setattr("svc_daemon.interpreters.STOP_S", 0.1)
    with pytest.raises(EmbedFailed, match="did not answer within"):
        embedder.embed(TEXTS)
    assert has_ended(child)


def test_queries_before_a_process_that_hangs_are_bounded_and_end_it(
    open_embedder: Open, children: Children, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A second is the least that the socket can wait.
    monkeypatch.setattr(processes, "QUERY_PATIENCE_S", 1.0)
    embedder, child = open_stuck(open_embedder, children)
    begin_s = time.monotonic()
    while not has_ended(child):
        # Soon there are more than the socket holds.
        with suppress(EmbedFailed):
            embedder.embed_query("x" * 100_000, time.monotonic() + 0.05)
        assert time.monotonic() - begin_s < 10
    assert len(embedder.embed(TEXTS)) == len(TEXTS)


def test_a_query_without_an_answer_ends_the_process(
    open_embedder: Open, children: Children, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder, child = open_stuck(open_embedder, children)
    with pytest.raises(EmbedFailed, match="not embedded in time"):
        embedder.embed_query("x", time.monotonic() + 0.1)
    monkeypatch.setattr(processes, "QUERY_PATIENCE_S", 0.05)
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
        monkeypatch.setattr(processes, "PATIENCE_S", 0.05)
        with pytest.raises(EmbedFailed, match="not loaded within"):
            embedder.embed_query("x", time.monotonic() + 0.1)
        with pytest.raises(EmbedFailed):
            starting.result(30)
    wait_until(lambda: has_ended(child), "its end")


def test_closing_ends_the_process_and_what_it_does(open_embedder: Open, children: Children) -> None:
    embedder, child = open_stuck(open_embedder, children)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(embedder.embed, TEXTS)
        closing = threading.Thread(target=embedder.close)
        closing.start()
        with pytest.raises(EmbedFailed):
            asked.result(30)
        child.resume()
        closing.join(30)
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
        assert starting.exception(30) is None or isinstance(starting.exception(), EmbedFailed)
    assert children() == []


def test_a_model_that_can_not_be_loaded_says_why(
    open_embedder: Open, children: Children, tiny_model: InstalledModel
) -> None:
    damaged = replace(tiny_model, files={**tiny_model.files, "model.onnx": "0" * 64})
    with pytest.raises(EmbedFailed, match="is damaged: not the bytes that were written"):
        open_embedder(damaged).start()
    assert children() == []


def test_a_missing_library_is_told_with_the_line_that_brings_it(
    open_embedder: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(EmbedFailed, match=r"numpy is not installed. Run pip install 'svc-knowledge\[semantic\]' in"):
        open_embedder().start()
