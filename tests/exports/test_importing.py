"""What an import does with each entry, decided from the export and the bucket alone."""

from typing import Any

from svc_cli.exports.importing import plan_import
from svc_cli.exports.manifests import ExportManifest
from tests.exports.archives import BUCKET, file_entry

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
