"""What a person is asked before something is destroyed, and what a terminal of a certain width shows."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.installations import Installation
from tests.cli.terminals import on_terminal
from tests.samples import make_pdf

Json = dict[str, Any]


def _upload(installation: Installation, name: str, bucket: str, words: str = "Words about quays.") -> str:
    (installation.root / name).write_text(words)
    (item,) = installation.svc("upload", name, "-b", bucket, "--json").json["items"]
    return str(item["source_id"])


@pytest.mark.parametrize("answer", ["n\n", "\n", "maybe\n"])
def test_only_yes_deletes_a_source(shared_installation: Installation, answer: str) -> None:
    source_id = _upload(shared_installation, "kept.md", "kept")
    code, shown = on_terminal(shared_installation, "source", "rm", "kept.md", "-b", "kept", typed=answer)
    assert code == 3
    assert f"delete kept.md ({source_id}) from every bucket? [y/N]" in shown
    assert "Nothing was changed" in shown
    assert shared_installation.svc("source", "show", source_id).exit == 0
    assert on_terminal(shared_installation, "source", "rm", source_id, typed="y\n")[0] == 0
    assert shared_installation.svc("source", "show", source_id).exit == 5


def test_several_buckets_are_deleted_after_one_question(shared_installation: Installation) -> None:
    for bucket in ("one", "two"):
        _upload(shared_installation, f"{bucket}.md", bucket)
    code, shown = on_terminal(shared_installation, "bucket", "rm", "one", "two", "--wait", typed="yes\n")
    assert code == 0
    assert shown.count("[y/N]") == 1
    assert "one (1 sources), two (1 sources)" in shown
    assert {shared_installation.svc("bucket", "show", bucket).exit for bucket in ("one", "two")} == {5}


def test_a_missing_bucket_among_several_leaves_the_others_alone(shared_installation: Installation) -> None:
    _upload(shared_installation, "three.md", "three")
    assert shared_installation.svc("bucket", "rm", "three", "nowhere", "--force").exit == 5
    assert shared_installation.svc("bucket", "show", "three").exit == 0


def test_a_bucket_named_by_slug_and_by_id_is_deleted_once(shared_installation: Installation) -> None:
    bucket_id = shared_installation.svc("bucket", "create", "twice", "--json").json["id"]
    told = shared_installation.svc("bucket", "rm", "twice", bucket_id, "--force", "--json")
    assert (told.exit, told.json["slug"]) == (0, "twice")


def test_several_deleted_buckets_are_one_json_value(shared_installation: Installation) -> None:
    for bucket in ("four", "five"):
        assert shared_installation.svc("bucket", "create", bucket).exit == 0
    told = shared_installation.svc("bucket", "rm", "four", "five", "--force", "--wait", "--json").json
    assert (told["type"], [item["status"] for item in told["items"]]) == ("bucket.deletions", ["deleted", "deleted"])


def test_yes_does_not_delete_what_something_depends_on(shared_installation: Installation) -> None:
    source_id = _upload(shared_installation, "named.md", "named")
    made = shared_installation.svc("agent", "create", "sales", "--source", "named.md", "--surface", "widget", "--json")
    assert made.json["policy"]["source_ids"] == [source_id]
    for words in (("source", "rm", source_id), ("agent", "rm", "sales")):
        code, shown = on_terminal(shared_installation, *words, typed="y\n")
        assert (code, "`--force` deletes it all the same" in shown) == (6, True)
        assert shared_installation.svc(*words, "--force").exit == 0


def test_a_refused_deletion_names_what_was_deleted_before_it(shared_installation: Installation) -> None:
    free, blocked = (_upload(shared_installation, f"{name}.md", "several", name) for name in ("free", "blocked"))
    assert shared_installation.svc("agent", "create", "blocker", "--source", blocked, "--surface", "widget").exit == 0
    code, shown = on_terminal(shared_installation, "source", "rm", free, blocked, typed="y\n", columns=200)
    assert (code, f"Deleted before: {free}." in shown) == (6, True)
    assert shared_installation.svc("source", "show", free).exit == 5
    assert shared_installation.svc("source", "show", blocked).exit == 0
    assert shared_installation.svc("agent", "rm", "blocker", "--force").exit == 0


def test_nobody_is_asked_who_does_not_want_to_be(shared_installation: Installation) -> None:
    source_id = _upload(shared_installation, "quiet.md", "quiet")
    code, shown = on_terminal(shared_installation, "source", "rm", source_id, "--no-input", typed="y\n")
    assert (code, "--force" in shown) == (2, True)


def test_a_terminal_shows_text_and_refuses_other_bytes(shared_installation: Installation) -> None:
    _upload(shared_installation, "plain.txt", "shown", "One\x1b[2Jtwo.\nThree.\n")
    (shared_installation.root / "plan.pdf").write_bytes(make_pdf(["The umber plan."]))
    assert shared_installation.svc("upload", "plan.pdf", "-b", "shown").exit == 0
    code, shown = on_terminal(shared_installation, "source", "get", "plain.txt", "-b", "shown", NO_COLOR="1")
    assert (code, shown) == (0, "One\\x1b[2Jtwo.\nThree.\n")
    code, shown = on_terminal(shared_installation, "source", "get", "plan.pdf", "-b", "shown")
    assert (code, "%PDF" in shown, "-o FILE" in shown) == (2, False, True)


def test_the_log_is_readable_on_a_terminal_and_json_elsewhere(shared_installation: Installation) -> None:
    code, shown = on_terminal(shared_installation, "daemon", "logs", "-n", "3", NO_COLOR="1")
    assert code == 0
    assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  \w+ +  ?\S", line) for line in shown.splitlines()), shown
    piped = shared_installation.svc("daemon", "logs", "-n", "3")
    assert all(line.startswith('{"ts":') for line in piped.stdout.splitlines())


@pytest.mark.parametrize("columns", [60, 120])
def test_tables_fit_the_terminal(shared_installation: Installation, columns: int) -> None:
    long = Path("guides", "very", "deep", "folder", "exit-codes-of-the-command-line.md")
    (shared_installation.root / long).parent.mkdir(parents=True, exist_ok=True)
    _upload(shared_installation, str(long), "wide")
    _upload(shared_installation, "wide-broken.pdf", "wide", "%PDF-1.7\nnothing")
    for words in (("status",), ("status", "-b", "wide"), ("source", "ls", "-b", "wide"), ("bucket", "ls")):
        code, shown = on_terminal(shared_installation, *words, columns=columns, NO_COLOR="1")
        assert code == 0
        assert max(map(len, shown.splitlines())) <= columns, shown
    _, shown = on_terminal(shared_installation, "source", "ls", "-b", "wide", columns=columns, NO_COLOR="1")
    shortened = re.findall(r"^src_\w+", shown, re.MULTILINE)
    assert len(set(shortened)) == 2
    assert all(shared_installation.svc("source", "show", start, "-b", "wide").exit == 0 for start in shortened)


def test_what_failed_comes_first_and_red(shared_installation: Installation) -> None:
    shared_installation.svc("bucket", "create", "a-first")
    _upload(shared_installation, "z.pdf", "z-failed", "%PDF-1.7\nnothing")
    store = shared_installation.svc("bucket", "show", "z-failed", "--json").json["bucketStore"]
    assert store["failed_member_count"] == 1
    for words in (("status",), ("bucket", "ls")):
        _, shown = on_terminal(shared_installation, *words)
        rows = [line for line in shown.splitlines() if "a-first" in line or "z-failed" in line]
        assert "z-failed" in rows[0]
        assert rows[0].startswith("\x1b[31m1")
        assert not rows[1].startswith("\x1b")
