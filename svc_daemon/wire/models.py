"""What all bodies have in common, of requests and of responses."""

from pydantic import BaseModel, ConfigDict


class WireModel(BaseModel):
    """A body, or a part of one. It is built when it is first used: most daemons need a few of the 150 models."""

    model_config = ConfigDict(defer_build=True)
