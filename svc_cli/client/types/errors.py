"""Types of errors. Made from `svc_daemon.wire` by `python -m tests.rules.client_types`."""

from typing import Any, TypedDict


class ErrorBodyDict(TypedDict):
    code: str
    message: str
    retryable: bool
    details: dict[str, Any]
