"""The text of a source as it is read anew from the stored bytes, which no index can falsify."""

from pathlib import Path
from typing import Any

from tests.api.answers import refused_field
from tests.api.daemons import NOTES, Daemon
from tests.samples import make_pdf


def blob_of(daemon: Daemon, source_id: str) -> Path:
    (blob,) = daemon.files.blobs.glob(f"*{source_id}*")
    return blob


def reread(daemon: Daemon, source_id: str) -> dict[str, Any]:
    return daemon.show(f"/v1/sources/{source_id}/text", verify="content")


def test_what_is_read_again_is_what_the_index_holds(working: Daemon) -> None:
    source_id = working.add_ready(make_pdf(["One page.", "Another page."]), filename="two.pdf")
    again, indexed = reread(working, source_id), working.show(f"/v1/sources/{source_id}/text")
    assert (again["text"], again["chunks"]) == (indexed["text"], indexed["chunks"])
    sha256 = working.source(source_id)["sha256"]
    assert again["content"] == {"sha256": sha256, "unchanged": True, "error": None}


def test_it_does_not_ask_the_index(working: Daemon) -> None:
    source_id = working.add_ready(NOTES)
    working.context.provider.delete_document(working.team_id, source_id)
    assert reread(working, source_id)["text"] == NOTES.decode()


def test_one_changed_byte_is_told(working: Daemon) -> None:
    source_id = working.add_ready(NOTES)
    blob = blob_of(working, source_id)
    blob.write_bytes(NOTES.replace(b"grey", b"gray"))
    again = reread(working, source_id)
    assert again["content"]["unchanged"] is False
    assert again["content"]["sha256"] != working.source(source_id)["sha256"]
    assert "gray" in again["text"]


def test_bytes_that_are_gone_or_no_document_any_more_are_told(working: Daemon) -> None:
    source_id = working.add_ready(make_pdf(["One page."]), filename="one.pdf")
    blob_of(working, source_id).write_bytes(b"%PDF-1.7\nbroken")
    again = reread(working, source_id)
    assert (again["text"], again["chunks"], again["content"]["unchanged"]) == ("", [], False)
    assert again["content"]["error"]["code"] == "document_unreadable"
    blob_of(working, source_id).unlink()
    gone = reread(working, source_id)
    assert gone["content"] == {"sha256": None, "unchanged": False, "error": None}


def test_no_other_proof_is_known(working: Daemon) -> None:
    source_id = working.add_ready(NOTES)
    answer = working.ask("GET", f"/v1/sources/{source_id}/text", params={"verify": "provider"})
    assert refused_field(answer) == "verify"
