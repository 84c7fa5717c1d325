"""The base class of all request and response bodies."""

from pydantic import BaseModel, ConfigDict


class WireModel(BaseModel):
    """A body, or a part of one.

    Its pydantic schema is built when it is first used, because a daemon usually needs only a few of the 150 models.
    """

    model_config = ConfigDict(defer_build=True)
