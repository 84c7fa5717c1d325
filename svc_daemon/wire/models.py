"""The base class of all request and response bodies."""

from pydantic import BaseModel, ConfigDict


class WireModel(BaseModel):
    """A body or a part of one. Its schema is built at its first use, because a daemon needs few of the 150 models."""

    model_config = ConfigDict(defer_build=True)
