"""Base classes of request bodies: types are strict, and null is the same as omitting a field."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator


def _describe_nulls(schema: dict[str, Any]) -> None:
    """Allow null in a body's schema for each optional field."""
    fields = schema.get("properties", {})
    for name in fields.keys() - schema.get("required", ()):
        if "anyOf" not in fields[name] and fields[name].keys() & {"type", "$ref"}:
            fields[name] = {"anyOf": [fields[name], {"type": "null"}]}


class RequestBody(BaseModel):
    """A request body, or a part of it. Values of a wrong type are refused, and unknown fields are ignored."""

    #: A model's schema is built when it is first used.
    model_config = ConfigDict(strict=True, defer_build=True, json_schema_extra=_describe_nulls)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, fields: Any) -> Any:
        """Remove fields that are null, which some clients send for every unset field."""
        if not isinstance(fields, dict):
            return fields
        return {name: value for name, value in fields.items() if value is not None}


def _refuse_dry_run(sent: Any) -> Any:
    if sent is not False:
        raise ValueError("This request has no dry run.")
    return sent


class NoDryRunBody(RequestBody):
    """A request body, or a part of it, that refuses dry runs."""

    #: Must be false. Only requests that create, attach or finalize something have dry runs.
    dry_run: Annotated[Literal[False], BeforeValidator(_refuse_dry_run), Field(exclude=True)] = False
