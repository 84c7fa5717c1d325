"""Tests searches of an index that still has documents of deleted or detached sources."""

import pytest

from tests.api.answers import body_of, details_of
from tests.api.daemons import Daemon

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
