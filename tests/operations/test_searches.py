"""What a search makes of an index that knows more than is true any more."""

from tests.api.answers import body_of, details_of
from tests.api.daemons import Daemon

#: More chunks than a page of ten looks at.
LONG = "\n\n".join(f"# Part {number}\n\nThe umber quay, quay, quay." for number in range(300)).encode()


def test_what_was_deleted_does_not_crowd_out_what_is_there(working: Daemon) -> None:
    kept = working.add_ready(b"A long tale in which one word is quay, and all the others are about other things.\n")
    gone = working.add_ready(LONG)
    working.stop()
    assert working.found("quay")[0] == gone
    body_of(working.ask("DELETE", f"/v1/sources/{gone}"))
    assert working.found("quay") == [kept]
    assert working.provider.get_document(working.team_id, gone) is not None


def test_what_was_detached_does_not_crowd_out_what_is_there(working: Daemon) -> None:
    kept = working.add_ready(b"A long tale in which one word is quay, and all the others are about other things.\n")
    gone = working.add_ready(LONG)
    working.stop()
    body_of(working.ask("DELETE", f"/v1/buckets/inbox/sources/{gone}"))
    assert working.found("quay", buckets=["inbox"]) == [kept]


def test_a_page_is_full_as_long_as_there_is_more(working: Daemon) -> None:
    working.add_ready(LONG, title="kept")
    gone = working.add_ready(LONG)
    working.stop()
    body_of(working.ask("DELETE", f"/v1/sources/{gone}"))
    page = body_of(working.search("quay", max_num_results=50))
    assert (len(page["data"]), page["has_more"]) == (50, True)


def test_a_bucket_whose_only_source_was_deleted_has_no_content(working: Daemon) -> None:
    gone = working.add_ready(LONG)
    working.stop()
    body_of(working.ask("DELETE", f"/v1/sources/{gone}"))
    details_of(working.search("quay", buckets=["inbox"]), "bucket_store_indexing_pending")
    assert working.found("quay") == []
