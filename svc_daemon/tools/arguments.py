"""Base classes for the arguments and results of tools, and their JSON schemas."""

from abc import abstractmethod
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator
from pydantic.alias_generators import to_camel

from svc_daemon.wire.light.field_errors import find_fault_of_number
from svc_daemon.wire.requests import RequestBody

#: Names to which a search is limited. An empty list would set no limit, so it is refused.
Named = Annotated[list[str], Field(min_length=1)]


def _leave_out_nulls(schema: dict[str, Any]) -> None:
    """Remove null from the types of optional fields in the schema. The tools still accept null."""
    for field in schema.get("properties", {}).values():
        kinds = [kind for kind in field.get("anyOf", ()) if kind != {"type": "null"}]
        if len(kinds) == 1:
            del field["anyOf"]
            field.update(kinds[0])


class Arguments(RequestBody):
    """Arguments of a tool, named in camel case. Numbers may be strings, as some models send them."""

    model_config = ConfigDict(
        strict=False,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        json_schema_extra=_leave_out_nulls,
    )

    @model_validator(mode="before")
    @classmethod
    def _without_team(cls, fields: Any) -> Any:
        """Refuse dry runs and a team id. Other unknown arguments are refused by name, since a typo would go unseen."""
        if isinstance(fields, dict) and {"team_id", "teamId"} & fields.keys():
            raise ValueError("The team follows from the API key; team_id is not accepted.")
        if isinstance(fields, dict) and (fields.get("dry_run") or fields.get("dryRun")):
            raise ValueError("A tool has no dry run.")
        return fields

    @field_validator("*", mode="before")
    @classmethod
    def _without_odd_numbers(cls, sent: Any, info: ValidationInfo) -> Any:
        if fault := find_fault_of_number(sent, cls.model_fields[str(info.field_name)].annotation):
            raise ValueError(fault)
        return sent


class ToolResult(BaseModel):
    """The structured result of a tool. `text()` returns the same result as plain text."""

    @abstractmethod
    def text(self) -> str:
        """Format the result as plain text."""


def plain_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Replace references by their targets, since many clients don't resolve them, and remove useless entries."""
    definitions = schema.pop("$defs", {})

    def resolve(node: Any) -> Any:
        if isinstance(node, list):
            return [resolve(each) for each in node]
        if not isinstance(node, dict):
            return node
        target = definitions.get(str(node.get("$ref", "")).rpartition("/")[2], {})
        whole = {**target, **{name: value for name, value in node.items() if name != "$ref"}}
        return {
            name: resolve(value)
            for name, value in whole.items()
            # A generated title or an empty default tells nobody anything.
            if not (name == "title" and isinstance(value, str))
            and not (name == "default" and value in (None, "", [], {}))
        }

    plain: dict[str, Any] = resolve(schema)
    return plain
