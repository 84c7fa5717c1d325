"""A bucket that is exported and imported into another service is the same there, even after kills."""

import hashlib
import json
import os
import random
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from svc_cli.app import run
from tests.acceptance.backups import run_killed
from tests.acceptance.calls import list_sources, make_bucket, upload, wait_ended
from tests.acceptance.forks import ROOT
from tests.acceptance.installations import Installation, wait_until
from tests.acceptance.sync_folders import count_requests
from tests.acceptance.vectors import wait_embedded
from tests.acceptance.workloads import hosting
from tests.conftest import UNLIMITED, MakeInstallation
from tests.embed.vector_servers import vector_server
from tests.exports.archives import Handmade, read

BUCKET = "shelf"
#: How many lines an export and an import are killed at.
KILLS, LARGE_KILLS = 2, 40
#: `run_killed` counts the lines that are executed in these modules.
COUNTED = tuple(
    f"svc_cli/{name}.py"
    for name in ("exports/exporting", "exports/importing", "transfer/downloads", "transfer/runs", "transfer/uploads")
)


def export(installation: Installation, name: str = "shelf.tar", bucket: str = BUCKET) -> bytes:
    """Export the bucket, assert that the reported hash and size are right, and return the file's bytes."""
    finished = installation.svc("bucket", "export", bucket, name, "--json")
    assert finished.exit == 0, finished.stdout
    data = (installation.root / name).read_bytes()
    assert (finished.json["sha256"], finished.json["size_bytes"]) == (hashlib.sha256(data).hexdigest(), len(data))
    return data


def counts(finished: Any) -> dict[str, int]:
    return {name: count for name, count in finished.json["counts"].items() if count}


def fill_oddly(client: httpx.Client, page_url: str) -> None:
    """Add sources of each kind to the bucket, including some that only the API can create."""
    path = f"/v1/buckets/{BUCKET}"
    deepest = '{"a":' + "[" * 31 + "1" + "]" * 31 + "}"
    sent = [upload(client, BUCKET, "deep.md", b"# Deep\n", title="deep", metadata=deepest)]
    twins = [{"tags": "a"}, {"tags": "b"}, {"metadata": json.dumps({"deep": [1, 2.5, None, {"ö": "ü"}]})}]
    sent += [upload(client, BUCKET, "twin.md", b"# Twin\n\nThe umber twin.\n", title="twin", **each) for each in twins]
    sent.append(upload(client, BUCKET, "other.md", b"# Twin\n\nThe other twin.\n", title="twin"))
    sent.append(upload(client, BUCKET, "noise.bin", random.Random(3).randbytes(9000), title="noise \U0001f600"))
    sent.append(client.post(f"{path}/pages", json={"url": page_url}))
    question = {"question": "Who minds the quay?", "answer": "Nobody does.", "alternate_questions": ["Whose quay?"]}
    sent += [client.post(f"{path}/qa", json=question | {"tags": [tag]}) for tag in ("x", "y")]
    sheet = b"name,stone\nquay,umber\n"
    opened = {"filename": "sheet", "content_type": "text/csv", "tags": ["a, b"], "mapping": "docs"}
    session = client.post(f"{path}/uploads", json={**opened, "size_bytes": len(sheet)}).json()
    client.put(session["upload_url"], content=sheet).raise_for_status()
    sent.append(client.post(f"{path}/uploads/{session['session_id']}/finalize", json={}))
    for answer in sent:
        wait_ended(client, answer.raise_for_status().json()["id"])


def find_all(client: httpx.Client, queries: Sequence[str]) -> list[tuple[list[str], list[str]]]:
    """Return the hits of each search without ids and times: in order without labels, and sorted with all fields."""
    fields, found = ("title", "filename", "score", "text", "location"), list[tuple[list[str], list[str]]]()
    for query in queries:
        body = {"query": query, "buckets": [BUCKET], "max_num_results": 50}
        page = client.post("/v1/search", json=body).raise_for_status().json()
        assert not page["has_more"], query
        ordered = [json.dumps([hit[name] for name in fields]) for hit in page["data"]]
        whole = sorted(json.dumps([hit[name] for name in (*fields, "tags", "metadata")]) for hit in page["data"])
        found.append((ordered, whole))
    return found


def rare_words(folder: Path) -> list[str]:
    """Return words of these files that are rare, counting all words with the same first three letters as one.

    A search takes `useful` for a form of `use`, which is in more passages than a page has hits.
    """
    texts = (path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file())
    counted = Counter(word for text in texts for word in re.findall(r"[a-z]{3,}", text.lower()))
    forms: Counter[str] = Counter()
    for word, count in counted.items():
        forms[word[:3]] += count
    return sorted(word for word in counted if len(word) >= 5 and forms[word[:3]] < 8)


@pytest.mark.rule("export.same", "export.metadata")
def test_imported_bucket_exports_the_same_bytes_and_has_the_same_search_results(
    make_installation: MakeInstallation, large: bool
) -> None:
    here, there = (make_installation(name, **UNLIMITED, SVC_FETCH_ALLOW="127.0.0.0/8").start() for name in "ab")
    unsent = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / ("svc_daemon" if large else "docs/how-to"), here.root / "docs", ignore=unsent)
    with here.client() as client, there.client() as other, hosting() as site:
        fields = {"name": "The shelf", "description": "Of all kinds.", "metadata": {"kind": "odd"}}
        client.put(f"/v1/buckets/{BUCKET}", json={**fields, "chunking": {"target": 500, "min": 400, "max": 600}})
        fill_oddly(client, site.server.url("/umber"))
        assert here.svc("upload", "docs", "-b", BUCKET).exit == 0
        data, before = export(here), count_requests(here)
        assert export(here) == data
        # Texts that are equal to the bytes are downloaded only once.
        names = read(data).manifest.members
        differ = {name for name in names if name.replace("bytes/", "texts/") not in names}
        assert (count_requests(here) - before)["GET /v1/sources/{source_id}/content"] == len(differ) < len(names) / 4
        imported = there.svc("bucket", "import", str(here.root / "shelf.tar"), "--keep-mapping", "--json")
        total = len(list_sources(client, BUCKET))
        # A source that is unreadable in one service is so in the other.
        assert (imported.exit, imported.failure[1], counts(imported)["created"]) == (3, "unsupported_format", total - 1)
        assert len(list_sources(other, BUCKET)) == total
        again = there.svc("bucket", "import", str(here.root / "shelf.tar"), "--keep-mapping", "--json")
        assert (counts(again)["unchanged"], again.json["bytes_sent"]) == (total - 1, 0)
        assert export(there) == data
        words = rare_words(here.root / "docs")
        queries = [" ".join(random.Random(number).sample(words, 3)) for number in range(49)] + ["umber twin"]
        hits = find_all(client, queries)
        assert sum(len(ordered) for ordered, _ in hits) > 100
        assert find_all(other, queries) == hits
    here.assert_intact()
    there.assert_intact()


@contextmanager
def two_machines(make_installation: MakeInstallation) -> Iterator[list[Installation]]:
    """Start two installations with the same model, whose vectors differ in their last bits, as between machines."""
    with vector_server() as one, vector_server() as other:
        other.drift = 0.001
        yield [
            make_installation(name, **UNLIMITED, SVC_EMBED_BASE_URL=server.base_url, SVC_EMBED_MODEL="any").start()
            for name, server in (("a", one), ("b", other))
        ]


def fill_with_passages(installation: Installation) -> None:
    """Add 11 documents of 20 passages, two of which have the same title and text."""
    with installation.client() as client:
        make_bucket(client, BUCKET)
        for number in range(11):
            title = f"{min(number, 9)}.md"
            parts = "".join(f"# Part {part}\n\nThe umber quay of {title}.\n\n" for part in range(20))
            upload(client, BUCKET, title, parts.encode(), title=title, tags=str(number)).raise_for_status()
    wait_until(lambda: wait_embedded(installation) == 220, "vectors of all passages")


@pytest.mark.rule("export.vectors")
def test_export_and_import_keep_vectors_bit_for_bit_even_if_imports_are_killed(
    make_installation: MakeInstallation,
) -> None:
    with two_machines(make_installation) as (here, there):
        fill_with_passages(here)
        data, archive = export(here), str(here.root / "shelf.tar")
        lines = _run_killed(there, 0, "import", archive, "-b", "other")
        _run_killed(there, lines // 2, "import", archive)
        imported = there.svc("bucket", "import", archive, "--wait", "accepted", "--json")
        # No vector is left to offer if the killed run had already offered all.
        offered = imported.json.get("vectors", {"found": 0, "kept": 0})
        assert (imported.exit, offered["kept"]) == (0, offered["found"])
        there.kill()
        there.start()
        with there.client() as client:
            for source in list_sources(client, BUCKET):
                wait_ended(client, source["id"])
        assert wait_embedded(there) == 440
        assert export(there) == data
        plain = ("bucket", "export", BUCKET, "plain.tar", "--no-vectors", "--json")
        assert (here.svc(*plain).json["model"], read(data).manifest.model is None) == (None, False)
    here.assert_intact()
    there.assert_intact()


def _run_killed(installation: Installation, line: int, *words: str) -> int:
    """Run `svc bucket …` in a child that is killed before the given counted line; return how many lines it reached."""

    def work() -> None:
        os.environ.update(installation.environ)
        os.chdir(installation.root)
        run(["bucket", *words, "--quiet"])

    return run_killed(work, line, COUNTED)


@pytest.mark.rule("export.killed")
def test_export_or_import_killed_at_any_line_completes_when_run_again(installation: Installation, large: bool) -> None:
    kills, moments = LARGE_KILLS if large else KILLS, random.Random(5)
    count = 250 if large else 20
    files = [(f"{number}.md", f"# Note {number}\n\nThe umber quay {number}.\n".encode()) for number in range(count)]
    whole = Handmade.of(*files, text="")
    (installation.root / "in.tar").write_bytes(whole.write())
    lines = _run_killed(installation, 0, "import", "in.tar", "-b", "whole")
    for line in sorted(moments.randint(1, lines) for _ in range(kills)):
        bucket = f"after-{line}"
        _run_killed(installation, line, "import", "in.tar", "-b", bucket)
        finished = installation.svc("bucket", "import", "in.tar", "-b", bucket, "--json")
        assert (finished.exit, counts(finished)["ready"], finished.json["remaining"]) == (0, count, 0), line
        with installation.client() as client:
            assert sorted(each["title"] for each in list_sources(client, bucket)) == sorted(name for name, _ in files)
    data = export(installation, bucket="whole")
    lines = _run_killed(installation, 0, "export", "whole", "out.tar")
    for line in sorted(moments.randint(1, lines) for _ in range(kills)):
        (installation.root / "out.tar").write_bytes(b"before")
        _run_killed(installation, line, "export", "whole", "out.tar")
        assert (installation.root / "out.tar").read_bytes() in (b"before", data), line
        assert export(installation, "out.tar", "whole") == data, line
        assert list(installation.root.glob(".*")) == [], line
    installation.assert_intact()
