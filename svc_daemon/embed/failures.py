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
    """A model can't be used; the installed model is left unchanged."""

    code = "svc_model_refused"
    retryable = False

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class ModelMissing(ModelProblem):
    """There is no such package, folder or file."""

    code = "svc_model_not_found"


class ModelRefused(ModelProblem):
    """The model is not the expected one, is of an unsupported kind or damaged, or can't be run."""


class ExtraMissing(ModelProblem):
    """A library of the extra is not installed."""

    code = "svc_extra_missing"

    def __init__(self, library: str) -> None:
        hint = f"Run {install_command('semantic')} in the environment in which svc is installed."
        super().__init__(f"The library {library} is not installed.", hint)


class DownloadFailed(ModelProblem):
    """The package could not be downloaded; the network may be at fault."""

    code = "svc_model_download_failed"
    retryable = True


class NoRoom(ModelProblem):
    """There is not enough disk space; no model was installed."""

    code = "svc_no_room"
    retryable = True


def require(libraries: tuple[str, ...]) -> None:
    """Raise ExtraMissing if a library isn't installed. Doesn't import any of them."""
    for library in libraries:
        if importlib.util.find_spec(library) is None:
            raise ExtraMissing(library)
