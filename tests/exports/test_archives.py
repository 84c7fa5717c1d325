"""An export is what `svc` would have written, to the last byte, or it is refused; and what an import does."""

import gzip
import io
import math
import struct
import tarfile
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from svc_cli.exports.archives import ArchiveWriter
from svc_cli.exports.exporting import LONGEST_LOOK_S, LOOK_S, STALLED_S, wait_embedded
from svc_cli.exports.importing import plan_import
from svc_cli.exports.manifests import ExportManifest, ExportRefused, check_limits
from svc_cli.progress import Silent
from tests.exports.archives import BUCKET, Handmade, Member, file_entry, packed, plain, read

ONE, TWO = b"# One\n\nThe umber quay.\n", b"# Two\n"
LIMITS: dict[str, Any] = {
    name: {"value": value}
    for name, value in (
        ("file_bytes", 100),
        ("metadata_bytes", 70),
        ("tags", 3),
        ("tag_characters", 8),
        ("title_characters", 20),
    )
}


def handmade() -> Handmade:
    return Handmade.of(("one.md", ONE), ("two.md", TWO))


@pytest.mark.rule("export.tarfile")
def test_pythons_own_tarfile_writes_and_reads_an_export() -> None:
    data, file = handmade().write(), io.BytesIO()
    archive = read(data)
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        contents = {info.name: tar.extractfile(info).read() for info in tar}  # type: ignore[union-attr]
        assert {(info.mode, info.mtime, info.uid, info.gid, info.uname, info.gname) for info in tar} == {
            (0o644, 0, 0, 0, "", "")
        }
    writer = ArchiveWriter(file, archive.manifest)
    for name, offset in archive.offsets.items():
        assert data[offset : offset + archive.manifest.members[name]] == contents[name]
        writer.add(name, len(contents[name]), [contents[name]])
    writer.end()
    assert file.getvalue() == data


@pytest.mark.rule("export.altered")
def test_no_byte_of_an_export_can_be_changed_or_be_missing() -> None:
    data = handmade().write()
    for place in range(0, len(data), 11):
        changed = bytearray(data)
        changed[place] ^= 1
        with pytest.raises(ExportRefused):
            read(bytes(changed))
    for length in {*range(0, len(data), 512), len(data) - 1, 1, 511, 513}:
        with pytest.raises(ExportRefused):
            read(data[:length])
    for more in (b"\0", bytes(10_240), data):
        with pytest.raises(ExportRefused):
            read(data + more)


def _with(change: Callable[[list[Member]], Any]) -> bytes:
    export = handmade()
    change(export.members)
    return export.write()


def _odd(**fields: Any) -> bytes:
    """The last member with other fields in its header."""
    export = handmade()
    for name, value in fields.items():
        setattr(export.members[-1][0], name, value)
    return export.write()


def _resized(size_bytes: int) -> bytes:
    """The last member's header says another size."""
    export, data = handmade(), handmade().write()
    before = export.members[-1][0].tobuf(tarfile.USTAR_FORMAT)
    export.members[-1][0].size = size_bytes
    return data.replace(before, export.members[-1][0].tobuf(tarfile.GNU_FORMAT))


ARCHIVES = {
    "nothing": b"",
    "text": b"# Not a tar\n" * 1000,
    "zeros": bytes(10_240),
    "gzip": gzip.compress(handmade().write()),
    "another tar": packed([plain("a.md", ONE)]),
    "a manifest alone": packed([plain("manifest.json", b"{}")]),
    "a symbolic link": _odd(type=tarfile.SYMTYPE, linkname="/etc/passwd", size=0),
    "a hard link": _odd(type=tarfile.LNKTYPE, linkname="manifest.json", size=0),
    "a device": _odd(type=tarfile.CHRTYPE, devmajor=1, devminor=3, size=0),
    "a pipe": _odd(type=tarfile.FIFOTYPE, size=0),
    "a folder": _odd(type=tarfile.DIRTYPE, size=0),
    "a sparse file": _odd(type=tarfile.GNUTYPE_SPARSE),
    "an old plain file": _odd(type=tarfile.AREGTYPE),
    "an absolute name": _odd(name="/etc/cron.d/x"),
    "a name with dots": _odd(name="bytes/../../x"),
    "a name that is not UTF-8": _odd(name="texts/\udcff"),
    "another name": _odd(name="texts/" + "0" * 64),
    "a long name": packed([plain("manifest.json" * 30, b"{}")], format=tarfile.GNU_FORMAT),
    "an extended header": packed([plain("manifest.json", b"{}", pax_headers={"size": "9"})], format=tarfile.PAX_FORMAT),
    "a time": _odd(mtime=1),
    "an owner": _odd(uid=1000),
    "a name of an owner": _odd(uname="root"),
    "a program": _odd(mode=0o4755),
    "a smaller size": _resized(1),
    "a larger size": _resized(100_000),
    "the size of a bomb": _resized(2**60),
    "a negative size": _resized(-1),
    "a missing member": _with(lambda members: members.pop()),
    "a doubled member": _with(lambda members: members.append(members[-1])),
    "an additional member": _with(lambda members: members.append(plain("zebra", b"x"))),
    "another order": _with(lambda members: members.reverse()),
    "other bytes": _with(lambda members: members.__setitem__(0, (members[0][0], bytes(members[0][0].size)))),
}


@pytest.mark.rule("export.altered")
def test_an_archive_that_svc_would_not_have_written_is_refused() -> None:
    accepted = []
    for name, data in ARCHIVES.items():
        try:
            read(data)
            accepted.append(name)
        except ExportRefused as refused:
            assert refused.message.endswith("."), name
    assert accepted == []


def _manifest(**fields: Any) -> bytes:
    """The export with other values in its manifest."""
    export = handmade()
    export.manifest |= fields
    return export.write()


def _source(**fields: Any) -> bytes:
    return _manifest(
        sources=[file_entry("one.md", ONE, **fields)], members={f"bytes/{file_entry('', ONE)['bytes']}": len(ONE)}
    )


def _rewritten(old: bytes, new: bytes) -> bytes:
    export = handmade()
    export.rewrite = lambda data: data.replace(old, new, 1)
    assert old in handmade().write()
    return export.write()


def _bucket(**fields: Any) -> bytes:
    return _manifest(bucket=handmade().manifest["bucket"] | fields)


ROW = bytes(32) + struct.pack("<2f", 0.6, 0.8)


def _vectors(data: bytes, **model: Any) -> bytes:
    return handmade().with_vectors(data, **model).write()


ENTRIES = handmade().manifest["sources"]
MANIFESTS = {
    "another format": _manifest(format="tar"),
    "a newer version": _manifest(version=2),
    "a version that is text": _manifest(version="1"),
    "a version that is a fraction": _rewritten(b'"version":1', b'"version":1.0'),
    "an unknown field": _manifest(extra=1),
    "a missing field": _rewritten(b'"questions":[],', b""),
    "a doubled field": _rewritten(b'"questions":[]', b'"questions":[],"questions":[]'),
    "spaces": _rewritten(b'"version":1', b'"version": 1'),
    "escapes": _rewritten(b"one.md", b"\\u006fne.md"),
    "no JSON": _rewritten(b"{", b"["),
    "a list": _rewritten(b"{", b"[]#"),
    "no UTF-8": _rewritten(b"one.md", b"\xff\xfe.md"),
    "a lone surrogate": _rewritten(b"one.md", b"\\ud800.md"),
    "no number": _rewritten(b'"metadata":{}', b'"metadata":{"a":NaN}'),
    "depth": _rewritten(b'"metadata":{}', b'"metadata":{"a":' + b"[" * 50_000 + b"]" * 50_000 + b"}"),
    "some depth": _rewritten(b'"metadata":{}', b'"metadata":{"a":' + b"[" * 40 + b"]" * 40 + b"}"),
    "an endless integer": _rewritten(b'"metadata":{}', b'"metadata":{"a":' + b"9" * 5000 + b"}"),
    "an integer of 65 bits": _bucket(metadata={"a": 2**64}),
    "infinity": _rewritten(b'"metadata":{}', b'"metadata":{"a":1e999}'),
    "a NUL character": _bucket(description="\0"),
    "a slug with a path": _bucket(slug="../x"),
    "a nameless bucket": _bucket(name=""),
    "chunk sizes without defaults": _bucket(chunking={"target": 900}),
    "chunk sizes that make no sense": _bucket(chunking={"target": 900, "min": 1, "max": 2, "overlap": 0}),
    "unsorted sources": _manifest(sources=ENTRIES[::-1]),
    "doubled sources": _manifest(sources=[ENTRIES[0], *ENTRIES]),
    "a hash that is a path": _source(bytes="../../etc/passwd"),
    "tags that are text": _source(tags="a,b"),
    "a type with a line break": _source(content_type="text/html\r\nX: y"),
    "members that no source names": _manifest(members={"../x": 1}),
    "vectors without a model": _vectors(ROW),
    "a model without vectors": _manifest(model={"name": "small@1", "dimension": 2}),
    "a model without a name": _vectors(ROW, name=""),
    "a model with more fields": _vectors(ROW, url="http://127.0.0.1"),
    "vectors without numbers": _vectors(bytes(32), dimension=0),
    "no vectors": _vectors(b"", dimension=2),
    "half a vector": _vectors(ROW + ROW[:20], dimension=2),
    "vectors of another dimension": _vectors(ROW, dimension=3),
    "a dimension that is endless": _vectors(ROW, dimension=2**40),
    "a size that is negative": _manifest(members=dict.fromkeys(handmade().manifest["members"], -1)),
    "a size that is true": _manifest(members=dict.fromkeys(handmade().manifest["members"], True)),
}


@pytest.mark.rule("export.altered")
def test_a_manifest_that_svc_would_not_have_written_is_refused() -> None:
    accepted = []
    for name, data in MANIFESTS.items():
        try:
            read(data)
            accepted.append(name)
        except ExportRefused as refused:
            # For what it says, not for a hash that doesn't match.
            assert refused.message.endswith(".") and "damaged" not in refused.message, name
    assert accepted == []
    with pytest.raises(ExportRefused, match="version 2"):
        read(MANIFESTS["a newer version"])


def test_an_export_may_have_vectors_with_any_numbers_in_them() -> None:
    data = _vectors(ROW + ROW[:32] + struct.pack("<2f", math.nan, math.inf), dimension=2)
    assert read(data).manifest.encode() in data


@pytest.mark.rule("export.refused")
def test_what_an_upload_may_not_have_is_refused() -> None:
    entry: dict[str, Any] = {
        "question": "q",
        "answer": "a",
        "alternate_questions": [],
        "tags": [],
        "metadata": {},
        "mapping": None,
    }
    fields: list[dict[str, Any]] = [
        *({"title": title} for title in (" ", "t" * 21, "a\nb", "a\x7f")),
        *({"filename": name} for name in ("", "..", "a/b", "a\\b", "a\u202eb", "n" * 256, " a", "e\u0301")),
        *({"tags": tags} for tags in (["a", "a"], [""], ["t" * 9], ["a\tb"], list("abcd"))),
        {"metadata": {"a": "x" * 70}},
        {"mapping": "a\nb"},
    ]
    accepted = []
    for each in fields:
        export = Handmade.of(("one.md", ONE), **each)
        accepted += [each] if _is_accepted(export) else []
    for each in ({"question": ""}, {"answer": " - "}, {"alternate_questions": ["q" * 21]}, {"tags": ["", "b"]}):
        export = handmade()
        export.manifest["questions"] = [{**entry, **each}]
        accepted += [each] if _is_accepted(export) else []
    for data in (b"", bytes(101)):
        accepted += [{"bytes": len(data)}] if _is_accepted(Handmade.of(("one.md", data))) else []
    export = handmade()
    export.manifest["bucket"]["metadata"] = {"a": "x" * 70}
    assert accepted == []
    assert not _is_accepted(export)
    export.manifest["bucket"]["metadata"] = {"a": _nested()}
    assert not _is_accepted(export)
    # At the limits.
    most = Handmade.of(("one.md", bytes(100)), title="t" * 20, tags=["t" * 8, "b", "c"], metadata={"a": "x" * 62})
    most.manifest["questions"] = [entry]
    assert _is_accepted(most)
    assert _is_accepted(Handmade.of(("one.md", ONE), metadata={"a": _nested()}, tags=[]))


def _nested() -> Any:
    value: Any = 1
    for _ in range(31):
        value = [value]
    return value


def _is_accepted(export: Handmade) -> bool:
    archive = read(export.write())
    try:
        check_limits(archive.manifest, LIMITS)
    except ExportRefused:
        return False
    return True


class Service:
    """Reports one number of passages without a vector after the other, and the last one for ever."""

    def __init__(self, missing: Sequence[int], state: str) -> None:
        self.missing, self.state, self.looks = missing, state, 0

    def bucket_vectors(self, bucket: str) -> dict[str, Any]:
        place = min(self.looks, len(self.missing) - 1)
        self.looks += 1
        return {"bucket_id": bucket, "state": self.state, "missing": self.missing[place], "passages": 9}


def looks(*missing: int, state: str = "ready", timeout_s: float | None = None) -> int:
    """How often an export looks before it goes on, by a clock that only its own pauses move."""
    service, passed_s = Service(missing, state), 0.0

    def sleep(seconds: float) -> None:
        nonlocal passed_s
        passed_s += seconds

    client: Any = service
    wait_embedded(client, "b", Silent(), timeout_s, sleep=sleep, clock=lambda: passed_s)
    return service.looks


@pytest.mark.rule("export.waits-vectors")
def test_an_export_waits_for_vectors_as_long_as_there_are_more_to_come() -> None:
    assert [looks(0), looks(9, state="off"), looks(9, state="failing"), looks(9, 5, 5, 1, 0)] == [1, 1, 1, 5]
    assert looks(9, timeout_s=1) < 1 / LOOK_S + 5
    # Without a change it looks less and less often, and then stops.
    assert STALLED_S / LONGEST_LOOK_S < looks(9, 5, state="loading") < STALLED_S / LOOK_S / 3


QUESTION = {"question": "Who?", "answer": "I.", "alternate_questions": ["Whom?"]}


def manifest(*entries: dict[str, Any], questions: tuple[dict[str, Any], ...] = ()) -> ExportManifest:
    described: dict[str, Any] = {"tags": [], "metadata": {}, "mapping": None}
    members = {f"bytes/{entry['bytes']}": 1 for entry in entries}
    asked = [{**described, **each} for each in questions]
    parts = {"bucket": BUCKET, "model": None, "sources": list(entries), "questions": asked, "members": members}
    return ExportManifest.model_validate(parts)


def known(name: str, entry: dict[str, Any], status: str = "active") -> dict[str, Any]:
    """The entry as a source of the bucket."""
    return {**entry, "id": name, "type": "file", "sha256": entry["bytes"], "status": status}


def planned(*arguments: Any, as_new: bool = False) -> list[tuple[str, str, str | None]]:
    plan = plan_import(*arguments, as_new=as_new)
    return [(each.label, each.action, each.source["id"] if each.source else None) for each in plan]


def test_each_entry_is_paired_with_one_source_and_the_others_are_created() -> None:
    one, tagged = file_entry("a", b"1"), file_entry("a", b"1", tags=["x"])
    other, described = file_entry("a", b"2"), {"title": "Who?", "tags": [], "metadata": {}, "status": "active"}
    question: dict[str, Any] = {**QUESTION, **described, "id": "q", "type": "qa"}
    cases: list[tuple[list[dict[str, Any]], list[dict[str, Any]], list[tuple[str, str, str | None]]]] = [
        ([one], [], [("a", "created", None)]),
        ([one], [known("s", one)], [("a", "unchanged", "s")]),
        ([one], [known("s", tagged)], [("a", "unchanged", "s")]),
        ([one], [known("s", one, "failed")], [("a", "retried", "s")]),
        ([one], [known("s", one, "queued")], [("a", "unchanged", "s")]),
        # The one that is the same in all fields is there already, so that the other is created.
        ([one, tagged], [known("s", tagged)], [("a", "created", None), ("a (2)", "unchanged", "s")]),
        ([one, tagged], [known("s", one), known("t", one)], [("a", "unchanged", "s"), ("a (2)", "unchanged", "t")]),
        # Other content is a conflict, unless the export has it too.
        ([one], [known("s", other)], [("a", "conflict", "s")]),
        ([one, other], [known("s", other)], [("a", "created", None), ("a (2)", "unchanged", "s")]),
        ([one], [known("s", one), known("t", other)], [("a", "unchanged", "s")]),
        # A question of this title is no other content.
        ([file_entry("Who?", b"1")], [question], [("Who?", "created", None)]),
    ]
    for entries, sources, expected in cases:
        assert planned(manifest(*entries), sources) == expected, (entries, sources)
    assert planned(manifest(one), [known("s", other)], as_new=True) == [("a", "created", None)]
    asked = manifest(questions=(QUESTION, {**QUESTION, "answer": "You."}))
    assert planned(asked, [question]) == [("Who?", "unchanged", "q"), ("Who? (2)", "created", None)]
