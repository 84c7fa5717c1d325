"""Agents in the form of OpenAI's models."""

from typing import Literal

from typing_extensions import TypedDict


class Model(TypedDict):
    """An agent as a model of OpenAI's API."""

    id: str
    object: Literal["model"]
    #: Unix time in seconds.
    created: int
    owned_by: str


class ModelAnswer(Model):
    request_id: str


class ModelList(TypedDict):
    object: Literal["list"]
    data: list[Model]
    request_id: str
