"""Tests replacing a source by another, and what a search finds of sources that are replaced or removed."""

import threading
from typing import Any

import httpx
import pytest

from svc_daemon.core.access import api_keys
from svc_daemon.provider.errors import ProviderFailed
from tests.acceptance.installations import PATIENCE_S
from tests.api.answers import body_of, details_of
from tests.api.daemons import Daemon
from tests.workers.rebuilds import adding, join

OLD, NEW, NEWER = b"The umber quay, first edition.\n", b"The umber quay, second edition.\n", b"The umber quay, third.\n"


@pytest.fixture
def old(working: Daemon) -> str:
    """A ready source in `inbox`."""
    return working.add_ready(OLD)


def replaced_by(daemon: Daemon, source_id: str) -> Any:
    return details_of(daemon.ask("GET", f"/v1/sources/{source_id}"), "source_not_found").get("replaced_by")


def go_on(daemon: Daemon, *source_ids: str) -> None:
    """Start the workers again, and wait until these sources are ready."""
    daemon.start()
    daemon.wait_ready(*source_ids)


def test_a_replacement_replaces_the_old_source_when_it_is_ready(working: Daemon, old: str) -> None:
    with adding(working, NEW, replaces=old) as new:
        waiting = working.source(new)
        assert (waiting["replaces"], waiting["status"]) == (old, "indexing")
        assert working.members() == working.found("quay") == [old]
    working.wait_ready(new)
    assert (working.source(new)["replaces"], replaced_by(working, old)) == (None, new)
    assert working.members() == working.members(status="all") == working.found("quay") == [new]
    details_of(working.ask("PATCH", f"/v1/sources/{old}", json={"title": "x"}), "source_not_found")
    working.wait(lambda: old not in working.blob_names(), "the old bytes are deleted")


def test_replaced_by_names_the_last_source_of_a_chain_of_replacements(working: Daemon, old: str) -> None:
    line = [old]
    for data in (NEW, NEWER):
        line.append(working.add_ready(data, replaces=line[-1]))
    assert [replaced_by(working, source_id) for source_id in line[:-1]] == [line[-1]] * 2
    working.delete(f"/v1/sources/{line[-1]}")
    assert [replaced_by(working, source_id) for source_id in line] == [None] * 3


def test_no_search_finds_both_sources_of_a_replacement_or_neither(working: Daemon, old: str) -> None:
    counts: list[int] = []
    stop = threading.Event()

    def search_on() -> None:
        while not stop.is_set():
            counts.append(len(working.found("quay", buckets=["inbox"])))

    searcher = threading.Thread(target=search_on)
    searcher.start()
    for number in range(6):
        old = working.add_ready(f"The umber quay, edition {number}.\n".encode(), replaces=old)
    stop.set()
    searcher.join(PATIENCE_S)
    assert (len(counts) > 6, set(counts)) == (True, {1})


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("narrowed", [{}, {"tags": ["t"]}, {"buckets": ["inbox"]}])
def test_a_search_that_runs_during_a_replacement_finds_the_new_source(
    working: Daemon, elsewhere: bool, narrowed: dict[str, Any]
) -> None:
    old = working.add_ready(OLD, tags="t")
    working.make_bucket("second")
    if elsewhere:
        join(working, old)
        working.wait_ready(old)
    found: list[httpx.Response] = []
    body = {"buckets": ["inbox"], **narrowed}
    with working.provider.held("search") as hold:
        searching = threading.Thread(target=lambda: found.append(working.search("quay", **body)))
        searching.start()
        hold.wait_entered()
        new = working.add_ready(NEW, replaces=old, tags="t")
    searching.join(PATIENCE_S)
    assert [result["source_id"] for result in body_of(found[0])["data"]] == [new]


def test_a_source_in_two_buckets_is_replaced_only_in_the_bucket_of_the_replacement(working: Daemon, old: str) -> None:
    second = working.make_bucket("second")
    join(working, old)
    working.wait_ready(old)
    new = working.add_ready(NEW, replaces=old)
    left = working.source(old)
    assert (left["bucket_ids"], left["ready"]) == ([second], True)
    for bucket, source_id in (("inbox", new), ("second", old)):
        assert working.members(bucket) == working.found("quay", buckets=[bucket]) == [source_id]


@pytest.mark.parametrize(("place", "other"), [("inbox", "second"), ("second", "inbox")])
def test_a_replacement_that_is_attached_to_another_bucket_still_replaces_the_old_source(
    working: Daemon, place: str, other: str
) -> None:
    """The sync of either bucket may come first."""
    working.make_bucket("second")
    old = working.add_ready(OLD, bucket=place)
    working.stop()
    new = working.add_source(NEW, bucket=place, replaces=old)
    join(working, new, other)
    go_on(working, new)
    assert working.members(place) == working.members(other) == [replaced_by(working, old)] == [new]


def test_a_newer_replacement_supersedes_one_that_is_not_ready(working: Daemon, old: str) -> None:
    working.stop()
    first = working.add_source(NEW, replaces=old)
    second = working.add_source(NEWER, replaces=old)
    assert replaced_by(working, first) == second
    go_on(working, second)
    assert working.members(status="all") == working.found("quay") == [replaced_by(working, old)] == [second]


def test_replacing_a_replacement_that_is_not_ready_replaces_both_sources(working: Daemon, old: str) -> None:
    with working.provider.held("put_documents") as hold:
        first = working.add_source(NEW, replaces=old)
        hold.wait_entered()
        second = working.add_source(NEWER, replaces=first)
        assert working.found("quay") == [old]
    working.wait_ready(second)
    assert working.members(status="all") == working.found("quay") == [replaced_by(working, old)] == [second]


def test_if_a_replacement_fails_the_old_source_stays_until_the_next_replaces_both(working: Daemon, old: str) -> None:
    failed = working.add_source(b" \n", replaces=old)
    working.wait_status(failed, "failed")
    assert (working.members(), working.found("quay"), working.source(old)["ready"]) == ([old], [old], True)
    new = working.add_ready(NEW, replaces=failed)
    assert working.members(status="all") == [new]
    assert (replaced_by(working, old), replaced_by(working, failed)) == (new, new)


def test_replacements_of_one_source_in_two_buckets_do_not_supersede_each_other(working: Daemon, old: str) -> None:
    working.make_bucket("second")
    join(working, old)
    working.wait_ready(old)
    working.stop()
    first = working.add_source(NEW, replaces=old)
    second = working.add_source(NEWER, replaces=old, bucket="second")
    go_on(working, first, second)
    assert (working.members("inbox"), working.members("second")) == ([first], [second])


def test_a_replacement_that_is_superseded_in_one_bucket_stays_in_its_other_bucket(working: Daemon, old: str) -> None:
    second_bucket = working.make_bucket("second")
    working.stop()
    first = working.add_source(NEW, replaces=old)
    join(working, first)
    second = working.add_source(NEWER, replaces=old)
    superseded = working.source(first)
    assert (superseded["bucket_ids"], superseded["replaces"]) == ([second_bucket], None)
    go_on(working, first, second)
    assert (working.members("inbox"), working.members("second")) == ([second], [first])


def test_a_failed_replacement_replaces_the_old_source_after_a_retry(working: Daemon, old: str) -> None:
    working.provider.fail("put_documents", ProviderFailed("No.", retryable=False))
    new = working.add_source(NEW, replaces=old)
    assert working.wait_status(new, "failed")["replaces"] == old
    working.post(f"/v1/sources/{new}/retry")
    working.wait_ready(new)
    assert working.members(status="all") == [new]


@pytest.mark.parametrize("path", ["/v1/sources/{}", "/v1/buckets/inbox/sources/{}"])
def test_a_replacement_is_ready_if_the_old_source_was_deleted_or_detached_meanwhile(
    working: Daemon, old: str, path: str
) -> None:
    working.stop()
    new = working.add_source(NEW, replaces=old)
    working.delete(path.format(old))
    go_on(working, new)
    assert (working.members(status="all"), working.source(new)["replaces"]) == ([new], None)
    if "buckets" in path:
        assert working.source(old)["bucket_ids"] == []


def test_replacing_requires_a_member_of_the_bucket_and_the_capability_to_delete(daemon: Daemon) -> None:
    old = daemon.add_source(OLD)
    daemon.make_bucket("second")
    elsewhere = daemon.add_source(OLD, bucket="second")
    theirs = daemon.add_team()
    daemon.make_bucket(key=theirs)
    for replaces in (elsewhere, daemon.add_source(OLD, key=theirs), "src_missing"):
        details_of(daemon.upload(NEW, replaces=replaces), "source_not_found")
    refused = daemon.upload(NEW, replaces=old, key=daemon.add_key(api_keys.FILE_CREATE))
    assert details_of(refused, "forbidden_project_key") == {"required_capability": "knowledge:source:delete"}
    body_of(daemon.upload(NEW, replaces=old, key=daemon.add_key(api_keys.FILE_CREATE, api_keys.SOURCE_DELETE)), 201)


#: More chunks than a search for ten results reads.
LONG = "\n\n".join(f"# Part {number}\n\nThe umber quay, quay, quay." for number in range(300)).encode()
TALE = b"A long tale in which one word is quay, and all the others are about other things.\n"


@pytest.mark.parametrize("path", ["/v1/sources/{}", "/v1/buckets/inbox/sources/{}"])
def test_a_removed_source_with_better_hits_does_not_displace_a_remaining_one(working: Daemon, path: str) -> None:
    kept, gone = working.add_ready(TALE), working.add_ready(LONG)
    working.stop()
    assert working.found("quay")[0] == gone
    working.delete(path.format(gone))
    assert working.found("quay", **({"buckets": ["inbox"]} if "buckets" in path else {})) == [kept]
    assert working.provider.get_document(working.team_id, gone) is not None


def test_a_page_is_full_as_long_as_enough_chunks_of_remaining_sources_match(working: Daemon) -> None:
    kept, gone = working.add_ready(LONG, title="kept"), working.add_ready(LONG)
    working.stop()
    working.delete(f"/v1/sources/{gone}")
    page = body_of(working.search("quay", max_num_results=50))
    assert (len(page["data"]), page["has_more"]) == (50, True)
    working.delete(f"/v1/sources/{kept}")
    details_of(working.search("quay", buckets=["inbox"]), "bucket_store_indexing_pending")
    assert working.found("quay") == []
