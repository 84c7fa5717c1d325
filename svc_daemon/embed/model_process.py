"""The process that runs the model. It receives texts and returns vectors until the daemon closes the socket.

Queries and chunks have separate threads. The threads for chunks have a low priority, so that
searches don't wait.
"""

import os
import queue
import resource
import signal
import socket
import sys
import threading
from contextlib import suppress
from pathlib import Path

from svc_daemon.embed.contract import EmbedFailed, ModelProblem
from svc_daemon.embed.installed_models import InstalledModel, ModelFolder
from svc_daemon.embed.messages import DONE, FAILED, PROCESS, URGENT, Frame, receive_frame, send_frame
from svc_daemon.embed.onnx_inference import Runtime
from svc_daemon.wire.light.parsing import parse_json

#: The `nice` value of the threads that embed chunks. Text extraction has 10, and so takes precedence.
_NICE = 15
#: If memory runs out, the kernel kills this process, not the service.
_SACRIFICE = b"500"


class _Service:
    """Embeds texts on several threads."""

    def __init__(self, control: socket.socket, runtime: Runtime) -> None:
        self._control = control
        self._runtime = runtime
        self._sending = threading.Lock()
        self._urgent: queue.SimpleQueue[Frame] = queue.SimpleQueue()
        self._patient: queue.SimpleQueue[Frame] = queue.SimpleQueue()

    def serve(self, threads: int) -> None:
        """Embed received texts until the daemon closes the connection."""
        for _ in range(threads):
            threading.Thread(target=self._work, args=(self._urgent, 0), daemon=True).start()
            threading.Thread(target=self._work, args=(self._patient, _NICE), daemon=True).start()
        self._send(Frame(PROCESS, DONE, b""))
        incoming = self._control.makefile("rb")
        while (frame := receive_frame(incoming)) is not None:
            (self._urgent if frame.kind == URGENT else self._patient).put(frame)

    def _work(self, frames: "queue.SimpleQueue[Frame]", nice: int) -> None:
        if nice and sys.platform == "linux":
            # On Linux, this sets the priority of the current thread only.
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), min(os.nice(0) + nice, 19))
        while True:
            frame = frames.get()
            try:
                answer = Frame(frame.number, DONE, self._runtime.embed(frame.content.decode()))
            except EmbedFailed as failure:
                answer = Frame(frame.number, FAILED, str(failure).encode())
            self._send(answer)

    def _send(self, frame: Frame) -> None:
        # Ignore errors: the main thread notices a closed connection, and ends the process.
        with self._sending, suppress(OSError):
            send_frame(self._control, frame)


def main() -> None:
    """Run the process. Arguments: the models' folder, the model's record as JSON, the number of threads."""
    root, record, threads = sys.argv[-3:]
    control = socket.socket(fileno=0)
    # Ctrl+C signals the whole process group, but the daemon ends this process by closing its socket.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_bytes(_SACRIFICE)
    model = InstalledModel(**parse_json(record))
    try:
        folder = ModelFolder(Path(root))
        folder.check(model)
        runtime = Runtime(folder.folder_of(model), max_tokens=model.max_tokens, pooling=model.pooling)
        _Service(control, runtime).serve(int(threads))
    except ModelProblem as problem:
        send_frame(control, Frame(PROCESS, FAILED, " ".join(filter(None, (problem.message, problem.hint))).encode()))
    # A normal exit would wait for busy threads and exit handlers.
    os._exit(0)
