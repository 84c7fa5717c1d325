"""What every JSON body of a request has in common: strict types, and null for what is not sent."""

from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator


def _describe_nulls(schema: dict[str, Any]) -> None:
    """Say in a body's schema that what need not be sent may be null."""
    fields = schema.get("properties", {})
    for name in fields.keys() - schema.get("required", ()):
        if "anyOf" not in fields[name] and fields[name].keys() & {"type", "$ref"}:
            fields[name] = {"anyOf": [fields[name], {"type": "null"}]}


class RequestBody(BaseModel):
    """A body, or a part of one. A number is no text and a text no number; unknown fields are ignored."""

    model_config = ConfigDict(strict=True, json_schema_extra=_describe_nulls)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, fields: Any) -> Any:
        """Clients that send every field they know say null for those they don't mean."""
        if not isinstance(fields, dict):
            return fields
        return {name: value for name, value in fields.items() if value is not None}
