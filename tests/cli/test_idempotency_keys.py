"""The keys of uploads: the same for the same request, different for every other."""

import re
from dataclasses import replace

from svc_cli.client import NewFile, idempotency_key

UPLOAD = NewFile(filename="a.md", data=b"x", title="docs/a.md", tags=("a", "b"), metadata={"k": "v"}, sha256="0" * 64)
KEY = idempotency_key("bkt_1", UPLOAD, 0)


def test_a_key_is_well_formed_and_the_same_for_the_same_request() -> None:
    assert re.fullmatch(r"svc-[0-9a-f]{64}", KEY)
    assert idempotency_key("bkt_1", replace(UPLOAD), 0) == KEY
    assert idempotency_key("bkt_1", replace(UPLOAD, data=b"y"), 0) == KEY, "the bytes count by their hash alone"


def test_another_request_has_another_key() -> None:
    others = [
        *(replace(UPLOAD, title="docs/b.md"), replace(UPLOAD, filename="b.md"), replace(UPLOAD, tags=("a",))),
        *(replace(UPLOAD, metadata={}), replace(UPLOAD, sha256="1" * 64), replace(UPLOAD, replaces="src_1")),
    ]
    keys = [idempotency_key("bkt_1", other, 0) for other in others]
    assert len({KEY, *keys, idempotency_key("bkt_2", UPLOAD, 0), idempotency_key("bkt_1", UPLOAD, 1)}) == 9
