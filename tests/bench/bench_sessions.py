"""One large file through an upload session over the loopback, beside writing, hashing and syncing it in one process."""

import argparse
import hashlib
import os
import statistics
import tempfile
import time
from pathlib import Path

from svc_cli.client import BytesContent, Client, Description
from tests.bench.installations import running_daemon
from tests.bench.machines import report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size-bytes", type=int, default=25 * 1024**2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=None, help="where the data directory is made")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name, running_daemon(Path(name)) as daemon:
        data = os.urandom(options.size_bytes)
        puts_s, locals_s = [], []
        with Client(daemon.base_url, daemon.key) as client:
            bucket = client.ensure_bucket("bench")["id"]
            for number in range(options.rounds):
                locals_s.append(_write(Path(name) / "local", data))
                puts_s.append(_put(client, bucket, f"{number}.bin", data))
        put_s, local_s = statistics.median(puts_s), statistics.median(locals_s)
        results = {
            "put_ms": round(put_s * 1000, 1),
            "write_hash_sync_ms": round(local_s * 1000, 1),
            "times_as_long": round(put_s / local_s, 2),
        }
        report("sessions", {"size_bytes": options.size_bytes, "rounds": options.rounds}, results, Path(name))


def _put(client: Client, bucket: str, name: str, data: bytes) -> float:
    """Seconds until the service has all bytes, synced and hashed."""
    description = Description(filename=name, title=name, sha256=hashlib.sha256(data).hexdigest())
    opened = client.open_upload(bucket, description, len(data)).body
    begin_s = time.perf_counter()
    client.send_bytes(opened["upload_url"], BytesContent(data))
    took_s = time.perf_counter() - begin_s
    client.cancel_upload(bucket, opened["session_id"])
    return took_s


def _write(path: Path, data: bytes) -> float:
    """Seconds for writing, hashing and syncing the same bytes here."""
    begin_s = time.perf_counter()
    with path.open("wb") as file:
        hashlib.sha256(data).hexdigest()
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    took_s = time.perf_counter() - begin_s
    path.unlink()
    return took_s


if __name__ == "__main__":
    main()
