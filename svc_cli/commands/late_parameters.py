"""Options and arguments that load pydantic only for values that need conversion.

Typer always loads pydantic: 100 ms of a processor, longer than most commands run. Strings and missing values need no
conversion.
"""

from typing import Any

from typer.core import TyperArgument, TyperOption


class LateOption(TyperOption):
    def process_value(self, ctx: Any, value: Any) -> Any:
        if not _is_converted(self, value):
            return super().process_value(ctx, value)
        return self.callback(ctx, self, value) if self.callback else value


class LateArgument(TyperArgument):
    def process_value(self, ctx: Any, value: Any) -> Any:
        return value if _is_converted(self, value) else super().process_value(ctx, value)


def convert_late(parameters: list[Any]) -> list[Any]:
    """Make each parameter a LateArgument or LateOption, which Typer itself can't create."""
    for each in parameters:
        each.__class__ = LateArgument if isinstance(each, TyperArgument) else LateOption
    return parameters


def _is_converted(parameter: TyperOption | TyperArgument, value: Any) -> bool:
    """Whether Typer would leave this value as it is."""
    if parameter.required and not value:
        return False
    kind = parameter.type_descriptor
    if isinstance(value, str):
        return kind.annotation is str or value in (kind.choices or ())
    return value is None or (kind.annotation == list[str] and all(isinstance(each, str) for each in value))
