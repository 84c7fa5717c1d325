"""Reads safetensors files: the header's length, the header as JSON, then the tensors' data."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from svc_daemon.embed.failures import ModelRefused
from svc_daemon.wire.parsing import parse_json

Tensor = NDArray[Any]

_LENGTH_BYTES = 8
#: Maximum size of the header; a larger header is damaged. A thousand tensors need 100 KB.
_MAX_HEADER_BYTES = 16 * 1024 * 1024
#: Floating-point formats. Integer tensors are not needed.
_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}


def read_weights(data: bytes) -> dict[str, Tensor]:
    """Map tensor names to floating-point tensors, as float32. Raises ModelRefused if the file is damaged."""
    tensors: dict[str, Tensor] = {}
    try:
        size_bytes = int.from_bytes(data[:_LENGTH_BYTES], "little")
        if not 0 < size_bytes <= min(_MAX_HEADER_BYTES, len(data)):
            raise ValueError("its header is missing")  # noqa: TRY301 - one sentence for all that may be wrong with it
        start = _LENGTH_BYTES + size_bytes
        header, numbers = parse_json(data[_LENGTH_BYTES:start]), memoryview(data)[start:]
        for name, entry in header.items():
            if name == "__metadata__" or entry["dtype"] not in _TYPES:
                continue
            begin, end = entry["data_offsets"]
            if not 0 <= begin <= end <= len(numbers):
                raise ValueError("it ends too early")  # noqa: TRY301 - as above
            stored = np.frombuffer(numbers[begin:end], _TYPES[entry["dtype"]]).reshape(entry["shape"])
            # A BF16 number is the upper half of a float32.
            is_half = entry["dtype"] == "BF16"
            tensors[name] = (
                (stored.astype("<u4") << 16).view("<f4") if is_half else stored.astype(np.float32, copy=False)
            )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ModelRefused(f"The weights are not a complete safetensors file ({error}).") from error
    return tensors
