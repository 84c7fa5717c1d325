"""An embeddings server in a process of its own: what it costs a search to have its query embedded by one.

Its vectors are made of a hash of the text: they show how long a search by meaning takes, not what it finds. Once it is
asked to rest it refuses more than one text at a time, so that nothing else goes on while searches are measured.
"""

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.acceptance.forks import ROOT

#: As MiniLM makes them.
DIMENSION = 384


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body are two writes: together they would wait 40 ms for an acknowledgement.
    disable_nagle_algorithm = True
    #: While this file is there, only single texts are taken.
    resting: Path

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        texts = asked["input"]
        # The service sends a sentence that it knows along with each of its own.
        is_refused = len(texts) > 2 and self.resting.exists()
        rows = [{"index": number, "embedding": _vector(text)} for number, text in enumerate(texts)]
        body = json.dumps({"object": "list", "model": asked["model"], "data": rows}, separators=(",", ":")).encode()
        self.send_response(503 if is_refused else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def _vector(text: str) -> list[int]:
    return list(memoryview(hashlib.shake_128(text.encode()).digest(DIMENSION)).cast("b"))


@contextmanager
def serving_vectors(resting: Path) -> Iterator[str]:
    """Run the server; yields what `SVC_EMBED_BASE_URL` takes. It rests while the file `resting` is there."""
    command = [sys.executable, "-m", "tests.bench.vector_servers", str(resting)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
        server.terminate()


def main() -> None:
    _Handler.resting = Path(sys.argv[1])
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        sys.stdout.write(f"{server.server_port}\n")
        sys.stdout.flush()
        server.serve_forever()


if __name__ == "__main__":
    main()
