"""The fingerprints of requests that create something: a repeat after an upgrade has the one that is stored."""

from types import SimpleNamespace
from typing import Any

import pytest

from svc_daemon.api.requests import meaning_of
from svc_daemon.operations.ingest.files import FileUpload, file_fingerprint
from svc_daemon.operations.ingest.questions import QaPair, question_fingerprint
from svc_daemon.wire.batches import BatchCreate
from svc_daemon.wire.sessions import UploadCreate

DESTINATION: Any = SimpleNamespace(identity=["bkt_1"])
STAGED: Any = SimpleNamespace(sha256="0" * 64)
FILE = FileUpload(filename="a.md", title="A", content_type="text/markdown", declared_type="text/markdown")
BATCH = {
    "manifest": {"version": 1, "items": [{"client_file_id": "a"}]},
    "files": [{"client_file_id": "a", "filename": "a.md", "size_bytes": 1}],
}


# A field that is added later may be part of a fingerprint only if it is sent: with another fingerprint, the repeat of
# a request from before the upgrade would be refused as a conflict.
@pytest.mark.parametrize(
    ("made", "stored"),
    [
        (
            lambda: file_fingerprint(DESTINATION, FILE, STAGED),
            "8c67b15c8b7d943338779c765d16085531a18613512a00445f0e425e7e72d40b",
        ),
        (
            lambda: question_fingerprint(DESTINATION, QaPair(title="q", answer="a")),
            "00dfa9adf6c915515ce608a119a8580db755c13528e34dec669f05a484453480",
        ),
        (
            lambda: meaning_of(UploadCreate(filename="a.md", size_bytes=1)),
            "427cdf8960d8107bff15f072cfabf1ecfec6ab61d7db4fc0a1dbc0603e64e815",
        ),
        (
            lambda: meaning_of(BatchCreate.model_validate(BATCH)),
            "a2d229dcbfb3031eee254678f977cb3d3c5cbc299e030171379142a6d1f74c14",
        ),
    ],
    ids=["file", "question", "session", "batch"],
)
def test_a_repeat_after_an_upgrade_is_recognized(made: Any, stored: str) -> None:
    assert made() == stored
