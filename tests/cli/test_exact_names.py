"""Commands that change something take no guesses; and names of files are the same everywhere, in every locale."""

import json
import subprocess
import sys
from pathlib import Path
from zlib import crc32

import pytest

from svc_cli.client.api import Client
from svc_cli.client.source_lookups import EVENT, KEY, exact_id
from svc_cli.errors import ApiError, NotExact, UsageError
from tests.acceptance.installations import Installation
from tests.acceptance.sync_folders import write
from tests.cli.odd_servers import OddServer
from tests.cli.terminals import Json, RunSvc, on_terminal

Ids = dict[str, str]

#: Every command that changes a source.
CHANGES = ("rm --force", "detach", "attach", "retry", "refresh")
#: The buckets of the tests that change nothing.
KEPT, KEPT_TOO = "kept", "kept-too"


def _listed(here: RunSvc, bucket: str) -> list[Json]:
    return list(here("source", "ls", "-b", bucket, "--json").json["sources"])


@pytest.fixture
def bucket(request: pytest.FixtureRequest) -> str:
    """A bucket name that is unique to the test and its parameters."""
    return f"b{crc32(request.node.name.encode()):08x}"


@pytest.fixture
def other(bucket: str) -> str:
    """The name of a second bucket of the test."""
    return f"{bucket}-too"


def _fill(installation: Installation, bucket: str, other: str) -> Ids:
    names = ("leave.md", "docs/leave.md", "docs/pay.md")
    for name in names:
        write(installation.root / bucket, name, f"The cobalt rule of {name}.\n")
    assert installation.svc("upload", *names, "-b", bucket, cwd=installation.root / bucket).exit == 0
    upload = ("upload", "-", "--title", "leave.md", "-b", other)
    assert installation.svc(*upload, stdin="The umber rule.").exit == 0
    listed = installation.svc("source", "ls", "-b", bucket, "--json").json["sources"]
    return {each["title"]: each["id"] for each in listed}


@pytest.fixture(scope="module")
def kept(shared_installation: Installation) -> Ids:
    """The ids of three sources in one bucket, by title; another `leave.md` is in the other bucket."""
    return _fill(shared_installation, KEPT, KEPT_TOO)


@pytest.fixture
def ids(shared_installation: Installation, bucket: str, other: str) -> Ids:
    """The same in two buckets of the test's own, for tests that change something."""
    return _fill(shared_installation, bucket, other)


def test_source_rm_run_twice_deletes_only_the_source_that_it_names(
    here: RunSvc, bucket: str, other: str, ids: Ids
) -> None:
    words = ("source", "rm", "leave.md", "-b", bucket, "--force")
    assert here(*words).stdout == f"deleted {ids['leave.md']}\n"
    again = here(*words, "--json")
    meant = {"id": ids["docs/leave.md"], "title": "docs/leave.md", "bucket": bucket}
    assert again.failure == (2, "svc_not_exact")
    assert again.json["error"]["details"]["candidates"] == [meant]
    assert here("source", "rm", "leave.md", "--force").exit == 2
    assert here("source", "rm", "docs/leave.md", "-b", bucket, "--force").exit == 0
    assert here(*words, "--json").failure == (5, "source_not_found")
    titles = [each["title"] for each in (*_listed(here, bucket), *_listed(here, other))]
    assert titles == ["docs/pay.md", "leave.md"]


@pytest.mark.parametrize("change", CHANGES)
def test_a_guess_changes_nothing_and_lists_what_may_be_meant(
    here: RunSvc, kept: Ids, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _listed(here, KEPT)
    leave, pay = kept["leave.md"], kept["docs/pay.md"]
    # Sources of one upload have ids that begin with the same time.
    alike = leave[: len("src_") + 10]
    assert pay.startswith(alike)
    for name, meant in (("pay.md", [pay]), (leave[: len("src_") + 7], [leave, pay]), (alike, [leave, pay])):
        refused = here("source", *change.split(), name, "-b", KEPT, "--json")
        assert refused.exit == 2, name
        error = refused.json["error"]
        found = {each["id"]: each["title"] for each in error["details"]["candidates"]}
        assert set(error["details"]["source_ids"]) == set(found) >= set(meant), name
        # The hint lists the first five.
        assert sum(f"{each} ({title}" in error["hint"] for each, title in found.items()) == min(5, len(found)), name
    # The bucket of the settings doesn't count.
    monkeypatch.setenv("SVC_BUCKET", KEPT)
    refused = here("source", *change.split(), "leave.md", "--json")
    assert refused.exit == 2
    assert (leave in str(refused.json)) == (change != "detach")
    assert _listed(here, KEPT) == before


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("title", ("leave.md", "docs/leave.md"))
def test_an_id_a_long_prefix_and_an_exact_title_are_accepted(title: str, here: RunSvc, kept: Ids, change: str) -> None:
    for name in (kept[title], kept[title][:-2], title):
        planned = here("source", *change.split(), name, "-b", KEPT, "--dry-run", "--json")
        assert planned.exit == 0, name
        assert planned.json.get("id") == kept[title], name


def test_what_is_shaped_like_an_id_is_never_a_title(here: RunSvc, bucket: str, ids: Ids) -> None:
    start = ids["docs/pay.md"][:-1]
    for title in (start, "src_readme", "src_read.me", "bat_man.md"):
        assert here("upload", "-", "--title", title, "-b", bucket, stdin=title.encode()).exit == 0
    for words in (("show",), ("rm", "--dry-run")):
        assert here("source", *words, start, "-b", bucket, "--json").json["title"] == "docs/pay.md"
        assert here("source", *words, "src_readme", "-b", bucket, "--json").failure == (5, "source_not_found")
        assert here("source", *words, "src_read.me", "-b", bucket, "--json").json["title"] == "src_read.me"
    assert here("status", "bat_man.md", "-b", bucket, "--json").json["title"] == "bat_man.md"
    assert here("source", "rm", start, "-b", bucket, "--force").stdout == f"deleted {ids['docs/pay.md']}\n"
    assert start in {each["title"] for each in _listed(here, bucket)}


def test_two_sources_with_one_title_are_told_apart_by_their_ids(here: RunSvc, bucket: str, ids: Ids) -> None:
    upload = ("upload", "-", "--title", "leave.md", "-b", bucket, "--as-new")
    assert here(*upload, stdin=b"The new cobalt rule.").exit == 0
    both = {each["id"] for each in _listed(here, bucket) if each["title"] == "leave.md"}
    refused = here("source", "rm", "leave.md", "-b", bucket, "--force", "--json")
    assert refused.failure == (2, "svc_source_ambiguous")
    assert len(both) == 2
    assert {each["id"] for each in refused.json["error"]["details"]["candidates"]} == both
    one, two = both
    assert here("source", "rm", one, one[:-1], two, "--force").stdout == f"deleted {one}\ndeleted {two}\n"


def test_a_source_outside_of_the_named_bucket_is_not_found(here: RunSvc, kept: Ids) -> None:
    for name in (kept["leave.md"], kept["leave.md"][:-1], "docs/pay.md"):
        for change in ("rm --force", "detach", "retry", "refresh"):
            refused = here("source", *change.split(), name, "-b", KEPT_TOO, "--json")
            assert refused.failure == (5, "source_not_found"), (change, name)
    refused = here("source", "attach", "docs/pay.md", "-b", KEPT_TOO, "--json")
    assert refused.exit == 2
    assert kept["docs/pay.md"] in refused.json["error"]["details"]["source_ids"]


def test_an_agent_is_given_sources_by_their_ids(here: RunSvc, kept: Ids) -> None:
    words = ("agent", "create", "hr", "--source")
    for name in ("docs/pay.md", "pay.md", kept["docs/pay.md"][:11]):
        refused = here(*words, name, "--json")
        assert refused.failure == (2, "svc_not_exact")
        assert kept["docs/pay.md"] in str(refused.json)
    made = here(*words, kept["docs/pay.md"][:-1], "--json").json
    assert made["policy"]["source_ids"] == [kept["docs/pay.md"]]


@pytest.mark.parametrize("unknown", ["src_01k3zq8q4y7x01k3zq8q4y7x01", "src_01k3zq8q4y7x", "leaf.md", "pay.md"])
def test_nothing_is_deleted_if_one_of_several_sources_is_not_found(here: RunSvc, kept: Ids, unknown: str) -> None:
    before = _listed(here, KEPT)
    options = () if unknown.startswith("src_") else ("-b", KEPT)
    for names in ((kept["leave.md"], unknown), (unknown, kept["leave.md"])):
        refused = here("source", "rm", *names, *options, "--force")
        assert refused.exit == (2 if unknown == "pay.md" else 5)
        assert "Nothing was deleted." in refused.stderr
    assert _listed(here, KEPT) == before


def test_each_of_several_bucket_deletions_is_accounted_for(at_odd: RunSvc, odd: OddServer) -> None:
    for name in ("one", "two"):
        bucket = {"id": f"bkt_{name}", "slug": name, "counts": {"total": 1}}
        odd.answers[f"GET /v1/buckets/{name}"] = (200, bucket, {})
    odd.answers["DELETE /v1/buckets/bkt_one"] = (202, {"slug": "one", "status": "deleting"}, {})
    refused = {"error": {"code": "forbidden_project_key", "message": "No.", "retryable": False}}
    odd.answers["DELETE /v1/buckets/bkt_two"] = (403, refused, {})
    finished = at_odd("bucket", "rm", "one", "two", "--force")
    assert finished.failure == (4, "forbidden_project_key")
    assert finished.json["error"]["message"] == "No. Deleted before: one. Not deleted: two."
    finished = at_odd("bucket", "rm", "one", "three", "--force")
    assert finished.exit == 5
    assert "Nothing was deleted." in finished.json["error"]["message"]


@pytest.mark.parametrize("name", ["", " ", "\n", ".", "..", "a/b", "../sources/src_1"])
def test_the_client_sends_no_blank_name(name: str) -> None:
    with Client("http://127.0.0.1:1", "sk-test") as client, pytest.raises(UsageError):
        client.bucket(name)


def test_exact_id_accepts_an_id_and_a_prefix_that_only_one_id_has() -> None:
    keys = [{"id": "key_01k3zq8qaa", "name": "one"}, {"id": "key_01k3zq8qab", "name": "two"}]
    assert exact_id(KEY, "key_01k3zq8qab", keys) == exact_id(KEY, "key_01k3zq8qab", keys[1:]) == "key_01k3zq8qab"
    assert exact_id(KEY, "key_01k3zq8q", keys[1:]) == "key_01k3zq8qab"
    for name, meant in (("key_01k3zq8q", keys), ("key_01k3zq8", keys), ("key_", keys), ("two", keys[1:])):
        with pytest.raises(NotExact) as caught:
            exact_id(KEY, name, keys)
        assert caught.value.details == {"candidates": meant}, name
    for short in ("key_", "key_01k3zq8"):
        with pytest.raises(NotExact):
            exact_id(KEY, short, keys[1:])
    for kind, name in ((KEY, "key_none"), (KEY, "three"), (KEY, "evt_01k3zq8q"), (EVENT, "evt_01k3zq8q")):
        with pytest.raises(ApiError, match="There is no") as missing:
            exact_id(kind, name, keys)
        assert missing.value.exit == 5
        assert missing.value.code == kind.missing


def test_the_key_in_use_is_revoked_only_on_demand(
    here: RunSvc, shared_installation: Installation, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = here("key", "create", bucket, "--preset", "admin", "--json").json
    monkeypatch.setenv("SVC_API_KEY", made["key"])
    refused = here("key", "revoke", made["id"], "--json")
    assert refused.failure == (2, "svc_usage")
    assert f"the key in use, {bucket}" in refused.json["error"]["message"]
    assert "--force" in refused.json["error"]["hint"]
    words = ("key", "revoke", made["id"])
    code, shown = on_terminal(shared_installation, *words, typed="n\n", columns=250, SVC_API_KEY=made["key"])
    assert code == 3
    assert f"revoke the key in use, {bucket}" in shown
    ended = here("key", "revoke", made["id"], "--force")
    assert ended.exit == 0
    assert "the key in use" in ended.stdout
    assert "warning: this was the key in use. `svc-daemon key create" in ended.stderr
    assert here("bucket", "ls").exit == 4


NAMES = [
    *('say "hi".md', "%22.md", "100%.md", "%0A.md", "back\\slash.md", 'back\\"quote.md', "a;b=c.md", "C:\\x.md"),
    *("ü.md", "日本.md", "\\%22.md", "é\\\\.md", "c%20d.md"),
]


@pytest.mark.parametrize("mode", ["one", "session", "batch"])
def test_name_is_the_same_whatever_way_the_file_is_sent(here: RunSvc, mode: str) -> None:
    for number, name in enumerate(NAMES):
        Path(name).write_text(f"words {number} of {mode}")
        assert here("upload", name, "-b", f"names-{mode}", "--mode", mode, "--wait", "accepted").exit == 0, name
    listed = here("source", "ls", "-b", f"names-{mode}", "--json").json["sources"]
    assert sorted(each["title"] for each in listed) == sorted(NAMES)
    # A backslash ends a folder's name, by every door.
    assert sorted(each["filename"] for each in listed) == sorted(name.rpartition("\\")[2] for name in NAMES)


@pytest.mark.parametrize("locale", ["C", "POSIX"])
def test_names_are_utf8_in_a_locale_of_another_encoding(shared_installation: Installation, locale: str) -> None:
    folder = shared_installation.root / locale
    folder.mkdir()
    for name in ("ü.md", "日本.md"):
        folder.joinpath(name).write_text(f"words of {name} in {locale}")
    old = {"LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    words = ("sync", str(folder), "-b", f"locale-{locale.lower()}", "--json")
    command = [sys.executable, "-m", "svc_cli", *words]
    sent = subprocess.run(command, env={**shared_installation.environ, **old}, capture_output=True, check=False)
    report = json.loads(sent.stdout)
    assert (sent.returncode, report["counts"]["created"]) == (0, 2)
    assert sorted(item["path"] for item in report["items"]) == sorted(["ü.md", "日本.md"])
    again = shared_installation.svc(*words)
    assert again.json["counts"]["unchanged"] == 2
