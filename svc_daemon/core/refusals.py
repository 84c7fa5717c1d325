"""The error that names what is wrong with which part of a request."""

from svc_daemon.errors import ServiceError
from svc_daemon.wire.codes import ErrorCode


def refusal(path: str, message: str) -> ServiceError:
    """A 400 `invalid_request` about one field; `path` is dotted, such as `items.3.filename`, or empty for the whole."""
    return ServiceError(
        ErrorCode.INVALID_REQUEST, _sentence(path, message), errors=[{"path": path, "message": message}]
    )


def refusals(errors: list[tuple[str, str]]) -> ServiceError:
    """A 400 `invalid_request` about several fields, each a path and a message; at least one."""
    path, message = errors[0]
    sentence = _sentence(path, message) if len(errors) == 1 else f"{len(errors)} fields of the request are not valid."
    listed = [{"path": path, "message": message} for path, message in errors]
    return ServiceError(ErrorCode.INVALID_REQUEST, sentence, errors=listed)


def _sentence(path: str, message: str) -> str:
    return f"{path}: {message}" if path else message
