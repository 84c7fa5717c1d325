"""`verify=content`: the text of a source, extracted again from its stored bytes instead of read from the index."""

from pathlib import Path
from typing import Any

import pytest

from tests.api.answers import refused_field
from tests.api.daemons import NOTES, Daemon
from tests.samples import make_pdf


def blob_of(daemon: Daemon, source_id: str) -> Path:
    (blob,) = daemon.files.blobs.glob(f"*{source_id}*")
    return blob


def reread(daemon: Daemon, source_id: str) -> dict[str, Any]:
    return daemon.show(f"/v1/sources/{source_id}/text", verify="content")


def test_verified_text_equals_the_indexed_text_and_does_not_need_the_index(working: Daemon) -> None:
    source_id = working.add_ready(make_pdf(["One page.", "Another page."]), filename="two.pdf")
    path = f"/v1/sources/{source_id}/text"
    again, indexed = reread(working, source_id), working.show(path)
    assert (again["text"], again["chunks"]) == (indexed["text"], indexed["chunks"])
    sha256 = working.source(source_id)["sha256"]
    assert again["content"] == {"sha256": sha256, "unchanged": True, "error": None}
    working.context.provider.delete_document(working.team_id, source_id)
    assert reread(working, source_id)["text"] == indexed["text"]
    assert refused_field(working.ask("GET", path, params={"verify": "provider"})) == "verify"


@pytest.mark.folders
def test_verified_text_reports_bytes_that_are_changed_missing_or_unreadable(working: Daemon) -> None:
    source_id = working.add_ready(NOTES)
    blob = blob_of(working, source_id)
    blob.write_bytes(NOTES.replace(b"grey", b"gray"))
    again = reread(working, source_id)
    assert (again["content"]["unchanged"], "gray" in again["text"]) == (False, True)
    assert again["content"]["sha256"] != working.source(source_id)["sha256"]
    blob.unlink()
    assert reread(working, source_id)["content"] == {"sha256": None, "unchanged": False, "error": None}
    source_id = working.add_ready(make_pdf(["One page."]), filename="one.pdf")
    blob_of(working, source_id).write_bytes(b"%PDF-1.7\nbroken")
    again = reread(working, source_id)
    assert (again["text"], again["chunks"], again["content"]["unchanged"]) == ("", [], False)
    assert again["content"]["error"]["code"] == "document_unreadable"
