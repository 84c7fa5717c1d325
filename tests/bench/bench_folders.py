"""A folder of small Markdown files by `svc upload` and by a first `svc sync`, with the shipped limits and without.

Each on fresh daemons that have read one document. `processor_ms` and what follows it are of each file.
"""

import time

from tests.acceptance.calls import take_in
from tests.bench.harness import Row, Side, all_sides, read_options, report
from tests.bench.loads import BUCKET, make_files
from tests.conftest import UNLIMITED

LIMITS = {"shipped": {}, "without": UNLIMITED}
#: How exact the moment is when all was accepted.
LOOK_EVERY_S = 0.25


def main() -> None:
    options = read_options(__doc__, files=1000, size_bytes=4096, commands=["upload", "sync"], limits=[*LIMITS])
    rows = []
    for command in options.commands:
        for limits in options.limits:
            with all_sides(options, LIMITS[limits]) as sides:
                for side in sides:
                    make_files(side.root / "files", options.files, options.size_bytes)
                    with side.client() as client:
                        # The first document starts what reads documents.
                        take_in(client, "warm", "warm.md", b"# Warm\n\nSome text.")
                    rows.append({"side": side.name, "command": command, "limits": limits} | send_folder(side, command))
    report("folders", options, rows)


def send_folder(side: Side, command: str = "upload") -> Row:
    """One command, until all of `files` is ready; when all was accepted is what the daemon counts meanwhile."""
    files, accepted_s = sum(path.is_file() for path in (side.root / "files").rglob("*")), list[float]()
    with side.client() as client:
        client.put(f"/v1/buckets/{BUCKET}").raise_for_status()
        begin_s = looked_s = time.perf_counter()

        def count(kind: str) -> int:
            return int(client.get(f"/v1/buckets/{BUCKET}").raise_for_status().json()["bucketStore"][kind])

        def look() -> None:
            nonlocal looked_s
            # Few looks, because for each the daemon counts what it has.
            if not accepted_s and time.perf_counter() > looked_s + LOOK_EVERY_S:
                looked_s = time.perf_counter()
                if count("member_count") >= files:
                    accepted_s.append(looked_s - begin_s)

        cost = side.run_svc(command, "files", "-b", BUCKET, "--json", "--timeout", "60m", meanwhile=look)
        if (ready := count("indexed_member_count")) != files:
            raise RuntimeError(f"{ready} of {files} files are ready: {side.said()}")
    return {
        "accepted_s": round(accepted_s[0] if accepted_s else cost.wall_s, 2),
        "ready_s": round(cost.wall_s, 2),
        "files_per_second": round(files / cost.wall_s, 1),
        **cost.used.each_ms(files),
        "tree_mb": round(cost.tree_mb),
    }


if __name__ == "__main__":
    main()
