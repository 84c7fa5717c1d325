"""Runs a loaded model on the caller's thread. The libraries raise plain `Exception`, so all exceptions are caught."""

import os
from pathlib import Path

# Otherwise, onnxruntime writes a device id below the user's home and reports to its makers. It reads this when it is
# loaded: its own function that turns this off is too late.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Tokenizer

from svc_daemon.embed.contract import EmbedFailed, ModelRefused
from svc_daemon.embed.installed_models import CLS, GRAPH, TOKENIZER

_ERRORS_ALONE = 3
#: Usual names of the output that has one vector for the whole text.
_POOLED = ("embedding", "sentence_embedding")
_NUMBERS = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}


class Runtime:
    """A loaded model. Each calling thread uses one core."""

    def __init__(self, folder: Path, *, max_tokens: int, pooling: str) -> None:
        """Load the model. Raises ModelRefused if it can't be run."""
        self._pooling = pooling
        try:
            options = onnxruntime.SessionOptions()
            # Several texts in parallel are faster than one text on several threads.
            options.intra_op_num_threads = options.inter_op_num_threads = 1
            options.log_severity_level = _ERRORS_ALONE
            # Load the graph by its path: from bytes, it would be in memory twice.
            self._session = onnxruntime.InferenceSession(folder / GRAPH, options, providers=["CPUExecutionProvider"])
            self._inputs = [(given.name, _NUMBERS[given.type]) for given in self._session.get_inputs()]
            outputs = [given.name for given in self._session.get_outputs()]
            self._output = next((name for name in outputs if name in _POOLED), outputs[0])
            self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
            self._tokenizer.enable_truncation(max_tokens)
            self._tokenizer.no_padding()
            # Run the model once now, because the first run takes much longer than later ones.
            self.dimension = len(self._run("warm"))
        except Exception as error:
            raise ModelRefused(f"The model can't be run: {error}") from error

    def embed(self, text: str) -> bytes:
        """Return a text's vector (see `contract`). Raises EmbedFailed."""
        try:
            vector = self._run(text)
        except Exception as error:
            raise EmbedFailed(f"The model failed on a text: {error}", retryable=False) from error
        return vector.astype("<f4").tobytes()

    def _run(self, text: str) -> NDArray[np.float32]:
        ids = self._tokenizer.encode(text).ids
        rows = {
            "input_ids": ids,
            "position_ids": range(len(ids)),
            "attention_mask": [1] * len(ids),
            "token_type_ids": [0] * len(ids),
        }
        feeds = {name: np.array([rows[name]], kind) for name, kind in self._inputs}
        (output,) = self._session.run([self._output], feeds)
        vector: NDArray[np.float32] = output[0]
        # Combine the tokens' vectors, if the graph has not.
        if vector.ndim > 1:
            vector = vector[0] if self._pooling == CLS else vector.mean(axis=0)
        length = float(np.linalg.norm(vector))
        if not length > 0 or not np.isfinite(length):
            raise ValueError("its vector has no direction")
        return np.asarray(vector / np.float32(length), np.float32)
