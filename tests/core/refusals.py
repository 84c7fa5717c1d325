"""What a decision is refused with."""

from collections.abc import Callable
from typing import Any

import pytest

from svc_daemon.errors import ServiceError


def refusal(decide: Callable[..., object], *values: Any, **named: Any) -> ServiceError:
    """The error of a call that has to be refused."""
    try:
        taken = decide(*values, **named)
    except ServiceError as error:
        return error
    pytest.fail(f"{values!a} is taken as {taken!a}")


def field_of(error: ServiceError) -> tuple[str, str]:
    """The code of the error, and the path of the one field that it is about."""
    ((path, code),) = {(each["path"], error.code) for each in error.details["errors"]}
    return code, path
