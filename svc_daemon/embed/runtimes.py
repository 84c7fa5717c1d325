"""Runs a model: one text in, one vector out, on the calling thread.

onnxruntime and tokenizers have no class of their own for what goes wrong in them, so everything is caught here.
"""

from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Tokenizer

from svc_daemon.embed.contract import EmbedFailed
from svc_daemon.embed.failures import ModelRefused
from svc_daemon.embed.models import CLS, GRAPH, TOKENIZER

_ERRORS_ALONE = 3
#: What graphs call a vector that is one for the whole text.
_POOLED = ("embedding", "sentence_embedding")
_NUMBERS = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}


class Runtime:
    """A model in memory. Threads that embed at the same time take a core each."""

    def __init__(self, folder: Path, *, max_tokens: int, pooling: str) -> None:
        """Raises ModelRefused where the folder holds no model that can be run."""
        self._pooling = pooling
        try:
            self._session = _session(folder / GRAPH)
            self._inputs = [(given.name, _NUMBERS[given.type]) for given in self._session.get_inputs()]
            self._output = _choose_output([given.name for given in self._session.get_outputs()])
            self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
            self._tokenizer.enable_truncation(max_tokens)
            self._tokenizer.no_padding()
            # The first run takes much longer than the next ones.
            self.dimension = len(self._run("warm"))
        except Exception as error:
            raise ModelRefused(f"The model can't be run: {error}") from error

    def embed(self, text: str) -> bytes:
        """The vector, as `contract` has it. Raises EmbedFailed."""
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
        (answer,) = self._session.run([self._output], feeds)
        return _of_length_1(_pool(answer[0], self._pooling))


def _session(graph: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    # Two texts at once take less time than one after the other on two cores, whose threads wait busily for each other.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = _ERRORS_ALONE
    # By its path: from bytes the graph would be in memory twice.
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def _choose_output(names: list[str]) -> str:
    return next((name for name in names if name in _POOLED), names[0])


def _pool(answer: NDArray[np.float32], pooling: str) -> NDArray[np.float32]:
    """One vector; there is one for each token where the graph has not done that."""
    if answer.ndim == 1:
        return answer
    pooled: NDArray[np.float32] = answer[0] if pooling == CLS else answer.mean(axis=0)
    return pooled


def _of_length_1(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    length = float(np.linalg.norm(vector))
    if not length > 0 or not np.isfinite(length):
        raise ValueError("it gave no vector that has a direction")
    return np.asarray(vector / np.float32(length), np.float32)
