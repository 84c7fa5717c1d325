"""Records a daemon and commands under strace, and what their clients were answered."""

import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE

from tests.acceptance.calls import make_bucket
from tests.acceptance.installations import Finished, Installation
from tests.conftest import UNLIMITED
from tests.power.diaries import Diary, Document
from tests.power.histories import History
from tests.power.system_calls import Tracer


class Scene:
    """An installation whose daemon and commands are recorded."""

    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.root = root.resolve()
        self.installation = Installation(self.root, **UNLIMITED, SVC_FETCH_ALLOW="127.0.0.0/8")
        self.diary = Diary()
        self.history = History(self.root)
        #: What a user does before the daemon is started again; given whether all requests were answered.
        self.resume: Callable[[bool], None] = lambda _: None
        self._tracers: list[Tracer] = []

    def prepare(self, *names: str) -> list[str]:
        """Store documents, and return the sources' ids. All that is there after this counts as durable."""
        self.installation.start()
        with self.installation.client() as client:
            for bucket in ("alpha", "beta"):
                make_bucket(client, bucket)
            source_ids = [self.diary.upload(client, Document(name)) for name in names]
            self.diary.wait_ready(client, *source_ids)
        self.installation.stop()
        self.record_from_here()
        return source_ids

    def record_from_here(self) -> None:
        """Let all that is there now count as durable."""
        self.history = History(self.root)

    def start(self) -> None:
        self.installation.start(self.trace())

    def run(self, module: str, *words: str) -> Finished:
        """Run a program with arguments, recorded, and return its result."""
        return self.installation.run(*self.trace(), sys.executable, "-m", module, *words)

    def run_unrecorded(self, module: str, *words: str, **variables: str) -> Finished:
        environ = {**self.installation.environ, **variables}
        with self.installation.spawn(
            module, *words, env=environ, stdout=PIPE, stderr=PIPE, encoding="utf-8"
        ) as process:
            out, err = process.communicate()
        return Finished(process.returncode, out, err)

    def end(self) -> None:
        """Stop the daemon, and read what was recorded."""
        self.installation.clear()
        self.history.add([call for tracer in self._tracers for call in tracer.read_calls(self.root)])

    def trace(self) -> tuple[str, ...]:
        """Return the command to put before one that is recorded."""
        self._tracers.append(Tracer(self.root.with_name(f"{self.root.name}.strace{len(self._tracers)}")))
        return self._tracers[-1].launcher


def record(root: Path, play: Callable[[Scene], None]) -> Scene:
    """Play a scene in an empty folder."""
    scene = Scene(root)
    try:
        play(scene)
    finally:
        scene.end()
    return scene
