"""What every JSON body of a request has in common: strict types, and null for what is not sent."""

from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator


class RequestBody(BaseModel):
    """A body, or a part of one. A number is no text and a text no number; unknown fields are ignored."""

    model_config = ConfigDict(strict=True)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, fields: Any) -> Any:
        """Clients that send every field they know say null for those they don't mean."""
        if not isinstance(fields, dict):
            return fields
        return {name: value for name, value in fields.items() if value is not None}
