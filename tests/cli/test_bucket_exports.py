"""`svc bucket export` and `import` against a real daemon: refusals, mappings, conflicts and vectors."""

import os
import struct
from pathlib import Path

import pytest

from tests.acceptance.calls import list_sources, make_bucket, upload, wait_ended
from tests.acceptance.installations import Installation
from tests.cli.terminals import Json, RunSvc
from tests.exports.archives import Handmade

TWO = Handmade.of(("a.md", b"# A\n"), ("b.md", b"# B\n"))


def counts(summary: Json) -> dict[str, int]:
    return {name: count for name, count in summary["counts"].items() if count}


@pytest.mark.rule("export.refused")
def test_refused_and_dry_run_imports_do_not_create_the_bucket(
    here: RunSvc, bucket: str, shared_installation: Installation
) -> None:
    refused = {
        "damaged.tar": TWO.write()[:-1],
        "title.tar": Handmade.of(("a.md", b"# A\n"), title="a\nb").write(),
        "large.tar": Handmade.of(("a.md", bytes(26_214_401))).write(),
    }
    for name, data in refused.items():
        Path(name).write_bytes(data)
        finished = here("bucket", "import", name, "-b", bucket, "--json")
        assert finished.failure == (3, "svc_export_refused"), (name, finished.stdout)
    Path("good.tar").write_bytes(TWO.write())
    dry = here("bucket", "import", "good.tar", "-b", bucket, "--dry-run", "--json")
    assert dry.exit == 0
    assert {item["action"] for item in dry.json["items"]} == {"would_create"}
    os.mkfifo("pipe.tar")
    for words, failure in (
        (("good.tar", "--no-create"), (5, "bucket_not_found")),
        (("no.tar",), (5, "svc_path_not_found")),
        (("pipe.tar",), (3, "svc_export_refused")),
        ((".",), (3, "svc_export_refused")),
        (("good.tar", "--timeout", "-1"), (2, "svc_usage")),
    ):
        assert here("bucket", "import", *words, "-b", bucket, "--json").failure == failure
    with shared_installation.client() as client:
        assert client.get(f"/v1/buckets/{bucket}").status_code == 404


@pytest.mark.rule("export.mapping")
def test_import_keeps_the_mapping_only_with_keep_mapping(
    here: RunSvc, bucket: str, shared_installation: Installation
) -> None:
    export = Handmade.of(("a.md", b"# A\n\nWords.\n"), mapping="docs")
    export.manifest["bucket"]["slug"] = bucket
    Path("mapped.tar").write_bytes(export.write())
    with shared_installation.client() as client:
        # Without -b, the import goes into the bucket that the export names.
        for options, into, mapping in (((), bucket, None), (("--keep-mapping", "-b", "kept"), "kept", "docs")):
            assert here("bucket", "import", "mapped.tar", *options).exit == 0
            assert [each["mapping"] for each in list_sources(client, into)] == [mapping]


@pytest.mark.rule("export.added")
def test_import_adds_missing_sources_and_replaces_none(
    here: RunSvc, bucket: str, shared_installation: Installation
) -> None:
    Path("two.tar").write_bytes(TWO.write())
    with shared_installation.client() as client:
        make_bucket(client, bucket)
        for name, data in (("a.md", b"# A\n"), ("b.md", b"# Another B\n")):
            wait_ended(client, upload(client, bucket, name, data, title=name, tags="mine").json()["id"])
        finished = here("bucket", "import", "two.tar", "-b", bucket, "--json")
        assert finished.failure == (6, "svc_title_conflict")
        assert counts(finished.json) == {"unchanged": 1, "conflict": 1, "ready": 2}
        both = here("bucket", "import", "two.tar", "-b", bucket, "--as-new", "--json")
        assert both.exit == 0
        assert counts(both.json) == {"created": 1, "unchanged": 1, "ready": 2}
        listed = list_sources(client, bucket)
        assert sorted((each["title"], *each["tags"]) for each in listed) == [
            ("a.md", "mine"),
            ("b.md",),
            ("b.md", "mine"),
        ]
        # A source that was deleted is created again, although its idempotency key was used.
        (added,) = [each["id"] for each in listed if not each["tags"]]
        client.delete(f"/v1/sources/{added}").raise_for_status()
        back = here("bucket", "import", "two.tar", "-b", bucket, "--as-new", "--json")
        assert back.exit == 0
        assert counts(back.json) == {"created": 1, "unchanged": 1, "ready": 2}


@pytest.mark.rule("export.vectors")
def test_import_drops_vectors_without_a_matching_model(
    here: RunSvc, bucket: str, shared_installation: Installation
) -> None:
    row = bytes(32) + struct.pack("<2f", 0.6, 0.8)
    export = Handmade.of(("a.md", b"# A\n"), ("b.md", b"# B\n"), text="").with_vectors(row * 3, dimension=2)
    Path("vectors.tar").write_bytes(export.write())
    dry = here("bucket", "import", "vectors.tar", "-b", bucket, "--dry-run", "--json")
    assert dry.exit == 0
    assert "vectors" not in dry.json
    finished = here("bucket", "import", "vectors.tar", "-b", bucket, "--json")
    assert finished.exit == 0
    assert finished.json["vectors"] == {"found": 6, "kept": 0}
    none = here("bucket", "import", "vectors.tar", "-b", f"{bucket}-3", "--no-vectors", "--json")
    assert none.exit == 0
    assert none.json["counts"]["created"] == 2
    assert "vectors" not in none.json
    again = here("bucket", "import", "vectors.tar", "-b", bucket)
    assert again.exit == 0
    assert "vector" not in again.stderr
    told = here("bucket", "import", "vectors.tar", "-b", f"{bucket}-2")
    assert "the service kept 0 of 6 vectors of the export" in told.stderr
    with shared_installation.client() as client:
        assert client.get(f"/v1/buckets/{bucket}/vectors").json()["missing"] == 2
    out = here("bucket", "export", bucket, "out.tar", "--json").json
    assert out["model"] is None
    assert out["without_vector"] == 0


@pytest.mark.rule("export.waits")
def test_export_waits_for_indexing_and_refuses_bad_destinations(
    here: RunSvc, bucket: str, shared_installation: Installation
) -> None:
    with shared_installation.client() as client:
        make_bucket(client, bucket)
        for number in range(20):
            upload(client, bucket, f"{number}.md", f"# Note {number}\n".encode() * 50).raise_for_status()
        finished = here("bucket", "export", bucket, "out.tar", "--json")
        assert finished.exit == 0
        assert finished.json["sources"] == 20
        assert finished.json["without_text"] == 0
        assert {each["status"] for each in list_sources(client, bucket)} == {"active"}
    os.mkfifo("pipe.tar")
    for words, failure in (
        ((bucket, "."), (2, "svc_usage")),
        ((bucket, "-"), (2, "svc_usage")),
        # A rename would replace a device in the same way, as root even /dev/null.
        ((bucket, "pipe.tar"), (2, "svc_usage")),
        ((bucket, "no/x.tar"), (2, "svc_usage")),
        ((bucket, "-"), (2, "svc_usage")),
        (("gone", "x.tar"), (5, "bucket_not_found")),
    ):
        assert here("bucket", "export", *words, "--json").failure == failure
    assert sorted(path.name for path in Path().iterdir()) == ["out.tar", "pipe.tar"]
    assert Path("pipe.tar").is_fifo()


@pytest.mark.rule("export.killed")
def test_export_overwrites_the_partial_file_of_a_killed_export(
    here: RunSvc, bucket: str, shared_installation: Installation
) -> None:
    with shared_installation.client() as client:
        make_bucket(client, bucket)
    assert here("bucket", "export", bucket, "out.tar").exit == 0
    data = Path("out.tar").read_bytes()
    Path(".out.tar.part").write_bytes(data * 3)
    Path("out.tar").chmod(0o600)
    assert here("bucket", "export", bucket, "out.tar").exit == 0
    assert Path("out.tar").read_bytes() == data
    assert Path("out.tar").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in Path().iterdir()] == ["out.tar"]
