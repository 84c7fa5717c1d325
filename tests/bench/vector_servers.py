"""An embeddings server in a process of its own: what it costs a search to have its query embedded by one.

Its vectors are made of a hash of the text: they show how long a search by meaning takes, not what it finds.
"""

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.acceptance.forks import ROOT

#: As MiniLM makes them.
DIMENSION = 384


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body are two writes: together they would wait 40 ms for an acknowledgement.
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        hashes = [hashlib.shake_128(text.encode()).digest(DIMENSION) for text in asked["input"]]
        rows = [{"index": number, "embedding": list(memoryview(each).cast("b"))} for number, each in enumerate(hashes)]
        body = json.dumps({"object": "list", "model": asked["model"], "data": rows}, separators=(",", ":")).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving_vectors() -> Iterator[str]:
    """Run the server; yields what `SVC_EMBED_BASE_URL` takes."""
    command = [sys.executable, "-m", "tests.bench.vector_servers"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
        server.terminate()


if __name__ == "__main__":
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as listening:
        sys.stdout.write(f"{listening.server_port}\n")
        sys.stdout.flush()
        listening.serve_forever()
