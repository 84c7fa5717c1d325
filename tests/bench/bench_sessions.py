"""One large file through an upload session over the loopback, beside writing, hashing and syncing it in one process."""

import hashlib
import os
import statistics
from pathlib import Path

from svc_cli.client import BytesContent, Client, Description
from tests.bench.installations import measured, read_options
from tests.bench.machines import report, timed


def main() -> None:
    options = read_options(__doc__, size_bytes=25 * 1024**2, rounds=5)
    data, puts_s, locals_s = os.urandom(options.size_bytes), [], []
    with measured(options.folder) as daemon, Client(daemon.base_url, daemon.key) as client:
        bucket = client.ensure_bucket("bench")["id"]
        for number in range(options.rounds):
            locals_s.append(timed(lambda: _write(daemon.root / "local", data))[1])
            puts_s.append(_put_s(client, bucket, f"{number}.bin", data))
        put_ms, local_ms = (statistics.median(durations_s) * 1000 for durations_s in (puts_s, locals_s))
        results = {"put_ms": round(put_ms, 1), "write_hash_sync_ms": round(local_ms, 1)}
        report("sessions", vars(options), results | {"times_as_long": round(put_ms / local_ms, 2)}, daemon.root)


def _put_s(client: Client, bucket: str, name: str, data: bytes) -> float:
    """Seconds until the service has all bytes, synced and hashed."""
    description = Description(filename=name, title=name, sha256=hashlib.sha256(data).hexdigest())
    opened = client.open_upload(bucket, description, len(data)).body
    _, took_s = timed(lambda: client.send_bytes(opened["upload_url"], BytesContent(data)))
    client.cancel_upload(bucket, opened["session_id"])
    return took_s


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        hashlib.sha256(data).hexdigest()
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


if __name__ == "__main__":
    main()
