"""Weights as safetensors files keep them: a length, a JSON header, then the numbers of each tensor."""

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svc_daemon.embed.failures import ModelRefused

Tensor = NDArray[Any]

_LENGTH_BYTES = 8
#: A header of more is no header; that of a model with a thousand tensors has 100 KB.
_MAX_HEADER_BYTES = 16 * 1024 * 1024
#: The kinds of numbers that weights come in; whole numbers are tables that nobody needs here.
_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}


def read_weights(data: bytes) -> dict[str, Tensor]:
    """Every tensor of floating-point numbers by name, as float32. Raises ModelRefused for what is no such file."""
    try:
        header, start = _header(data)
        return {
            name: _tensor(entry, memoryview(data)[start:])
            for name, entry in header.items()
            if name != "__metadata__" and entry["dtype"] in _TYPES
        }
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ModelRefused(f"The weights are no whole safetensors file ({error}).") from error


def _header(data: bytes) -> tuple[dict[str, Any], int]:
    """The header, and where the numbers begin."""
    size_bytes = int.from_bytes(data[:_LENGTH_BYTES], "little")
    if not 0 < size_bytes <= min(_MAX_HEADER_BYTES, len(data)):
        raise ValueError("its header is missing")
    start = _LENGTH_BYTES + size_bytes
    return json.loads(data[_LENGTH_BYTES:start]), start


def _tensor(entry: dict[str, Any], numbers: memoryview) -> Tensor:
    begin, end = entry["data_offsets"]
    if not 0 <= begin <= end <= len(numbers):
        raise ValueError("it ends too early")
    stored = np.frombuffer(numbers[begin:end], _TYPES[entry["dtype"]]).reshape(entry["shape"])
    if entry["dtype"] == "BF16":
        # The upper half of a float32.
        return (stored.astype("<u4") << 16).view("<f4")
    return stored.astype(np.float32, copy=False)
