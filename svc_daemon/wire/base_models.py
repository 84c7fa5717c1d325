"""The base class of all request and response bodies."""

from pydantic import BaseModel, ConfigDict


class WireModel(BaseModel):
    """Base class of request and response bodies and their parts. A model's schema is built when it is first used."""

    model_config = ConfigDict(defer_build=True)
