"""The keys of uploads: the same for the same request, different for every other."""

import re
from dataclasses import replace

import pytest

from svc_cli.client import NewFile, idempotency_key

UPLOAD = NewFile(filename="a.md", data=b"x", title="docs/a.md", tags=("a", "b"), metadata={"k": "v"}, sha256="0" * 64)
KEY = idempotency_key("bkt_1", UPLOAD, 0)


def test_a_key_is_stable_and_well_formed() -> None:
    assert idempotency_key("bkt_1", replace(UPLOAD), 0) == KEY
    assert re.fullmatch(r"svc-[0-9a-f]{64}", KEY)


def test_the_bytes_count_through_their_hash_alone() -> None:
    assert idempotency_key("bkt_1", replace(UPLOAD, data=b"y"), 0) == KEY


@pytest.mark.parametrize(
    "other",
    [
        replace(UPLOAD, title="docs/b.md"),
        replace(UPLOAD, filename="b.md"),
        replace(UPLOAD, tags=("a",)),
        replace(UPLOAD, metadata={}),
        replace(UPLOAD, sha256="1" * 64),
        replace(UPLOAD, replaces="src_1"),
    ],
)
def test_another_request_has_another_key(other: NewFile) -> None:
    assert idempotency_key("bkt_1", other, 0) != KEY


def test_another_bucket_and_another_epoch_have_another_key() -> None:
    assert len({KEY, idempotency_key("bkt_2", UPLOAD, 0), idempotency_key("bkt_1", UPLOAD, 1)}) == 3
