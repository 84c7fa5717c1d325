"""Reading safetensors: every kind of number, and nothing but a whole file."""

import json

import numpy as np
import pytest

from svc_daemon.embed.contract import ModelRefused
from svc_daemon.embed.origins import read_weights
from tests.embed.models import make_weights, pack_weights


def packed(header: dict[str, object], numbers: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + numbers


def entry(dtype: str, shape: list[int], end: int) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [0, end]}


def test_tensors_come_back_as_they_were_written() -> None:
    weights = make_weights()
    read = read_weights(pack_weights(weights))
    assert read.keys() == weights.keys()
    assert all(np.array_equal(read[name], tensor) for name, tensor in weights.items())


HALVES = [0.5, -2.0, 0.0, 96.0]
NUMBERS = {
    "F64": np.array(HALVES, "<f8").tobytes(),
    "F32": np.array(HALVES, "<f4").tobytes(),
    "F16": np.array(HALVES, "<f2").tobytes(),
    "BF16": (np.array(HALVES, "<f4").view("<u4") >> 16).astype("<u2").tobytes(),
}
NO_WHOLE_FILES = [
    *(b"", b"\x05", (2**40).to_bytes(8, "little") + b"{}", (4).to_bytes(8, "little") + b"nope"),
    *(packed({"a": entry("F32", [2], 8)}, bytes(4)), packed({"a": entry("F32", [3], 8)}, bytes(8))),
    *(packed({"a": {"dtype": "F32"}}), packed({"a": entry("F32", [2**70], 8)}, bytes(8))),
    *((200_000).to_bytes(8, "little") + b"[" * 200_000, (2).to_bytes(8, "little") + b"[]"),
]


def test_every_kind_of_number_becomes_float32_and_all_else_is_passed_over() -> None:
    for dtype, numbers in NUMBERS.items():
        tensor = read_weights(packed({"a": entry(dtype, [2, 2], len(numbers))}, numbers))["a"]
        assert (str(tensor.dtype), tensor.tolist()) == ("float32", [HALVES[:2], HALVES[2:]]), dtype
    assert read_weights(packed({"__metadata__": {"format": "pt"}, "places": entry("I64", [1], 8)}, bytes(8))) == {}


@pytest.mark.parametrize("data", NO_WHOLE_FILES)
def test_what_is_no_whole_file_is_refused(data: bytes) -> None:
    with pytest.raises(ModelRefused, match="not a complete safetensors file"):
        read_weights(data)
