"""Base classes of JSON request bodies: types are strict, and null is the same as omitting a field.

Unsupported dry runs are refused.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from svc_daemon.wire.models import WireModel


def _describe_nulls(schema: dict[str, Any]) -> None:
    """Allow null in a body's schema for each field that is not required."""
    fields = schema.get("properties", {})
    for name in fields.keys() - schema.get("required", ()):
        if "anyOf" not in fields[name] and fields[name].keys() & {"type", "$ref"}:
            fields[name] = {"anyOf": [fields[name], {"type": "null"}]}


class RequestBody(WireModel):
    """A body, or a part of one. Numbers and strings aren't converted to each other; unknown fields are ignored."""

    model_config = ConfigDict(strict=True, json_schema_extra=_describe_nulls)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, fields: Any) -> Any:
        """Remove fields that are null, because some clients send null for every field that they don't set."""
        if not isinstance(fields, dict):
            return fields
        return {name: value for name, value in fields.items() if value is not None}


def _refuse_dry_run(sent: Any) -> Any:
    if sent is not False:
        raise ValueError("This request has no dry run.")
    return sent


class NoDryRunBody(RequestBody):
    """A body, or a part of one, for which a dry run isn't supported: requests for one are refused."""

    #: Only requests to create, attach or finalize support dry runs, and only with this field at the top level of the
    #: body.
    dry_run: Annotated[Literal[False], BeforeValidator(_refuse_dry_run), Field(exclude=True)] = False
