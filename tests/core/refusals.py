"""Returns the errors that functions of `core` raise."""

from collections.abc import Callable
from typing import Any

import pytest

from svc_daemon.errors import ServiceError


def refusal(decide: Callable[..., object], *values: Any, **named: Any) -> ServiceError:
    """Return the ServiceError of a call that must raise one."""
    try:
        taken = decide(*values, **named)
    except ServiceError as error:
        return error
    pytest.fail(f"{values!a} is taken as {taken!a}")


def field_of(error: ServiceError) -> tuple[str, str]:
    """Return the error's code, and the path of the only field that it is about."""
    ((path, code),) = {(each["path"], error.code) for each in error.details["errors"]}
    return code, path
