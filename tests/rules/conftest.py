"""Lets the garbage collector rest while the project's syntax trees are made: millions of objects that stay."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def trees_stay() -> Iterator[None]:
    gc.disable()
    yield
    gc.freeze()
    gc.enable()
