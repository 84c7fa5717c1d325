"""What can go wrong with a model before it is in use.

ModelProblem            anything: a code, a sentence, the remedy
 ├─ ModelMissing        there is nothing at the given place, or nothing is installed
 ├─ ModelRefused        it is there, but is not what it must be
 ├─ ExtraMissing        the libraries of the extra `semantic` are not installed
 ├─ DownloadFailed      the package could not be downloaded
 └─ NoRoom              the disk has no room for it
"""

import importlib.util

from svc_daemon.wire.versions import install_command

#: What running a model needs; making its graph needs `onnx`, too.
RUN_LIBRARIES = ("numpy", "onnxruntime", "tokenizers")
MAKE_LIBRARIES = (*RUN_LIBRARIES, "onnx")


class ModelProblem(Exception):
    """A model can't be used; what is installed stays as it was."""

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
    """It is not the expected model, of an unsupported kind, damaged, or can't be run."""


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
    """Nothing was written."""

    code = "svc_no_room"
    retryable = True


def require(libraries: tuple[str, ...]) -> None:
    """Raises ExtraMissing with the first library that isn't there; imports none."""
    for library in libraries:
        if importlib.util.find_spec(library) is None:
            raise ExtraMissing(library)
