"""The exceptions raised when a model can't be installed or loaded.

ModelProblem            base class: an error code, a message and a remedy
 ├─ ModelMissing        nothing was found at the given location, or no model is installed
 ├─ ModelRefused        the files are not a valid, supported model
 ├─ ExtraMissing        the libraries of the extra `semantic` are not installed
 ├─ DownloadFailed      the package could not be downloaded
 └─ NoRoom              there is not enough disk space
"""

import importlib.util

from svc_daemon.wire.versions import install_command

#: Libraries for running a model; building its graph also needs `onnx`.
RUN_LIBRARIES = ("numpy", "onnxruntime", "tokenizers")
MAKE_LIBRARIES = (*RUN_LIBRARIES, "onnx")


class ModelProblem(Exception):
    """A model can't be installed or used. A model that was already installed is unchanged."""

    code = "svc_model_refused"
    retryable = False

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class ModelMissing(ModelProblem):
    """There is no package, folder or file with the given name, or no model is installed."""

    code = "svc_model_not_found"


class ModelRefused(ModelProblem):
    """The files are not the expected model, are damaged or of an unsupported kind, or the model can't be run."""


class ExtraMissing(ModelProblem):
    """A library of the extra `semantic` is not installed."""

    code = "svc_extra_missing"

    def __init__(self, library: str) -> None:
        hint = f"Run {install_command('semantic')} in the environment in which svc is installed."
        super().__init__(f"The library {library} is not installed.", hint)


class DownloadFailed(ModelProblem):
    """The package with the model could not be downloaded, perhaps because of the network."""

    code = "svc_model_download_failed"
    retryable = True


class NoRoom(ModelProblem):
    """There is not enough disk space for the model, which was not installed."""

    code = "svc_no_room"
    retryable = True


def require(libraries: tuple[str, ...]) -> None:
    """Raise ExtraMissing if one of the libraries isn't installed. This does not import any of them."""
    for library in libraries:
        if importlib.util.find_spec(library) is None:
            raise ExtraMissing(library)
