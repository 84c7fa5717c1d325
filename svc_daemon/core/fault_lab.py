"""The rules of the fault lab, which makes requests to a daemon fail on purpose, to test clients.

A rule applies to the requests of one route, or to all. It lets the first `skip` requests pass, disturbs the next
`times`, and lets the rest pass. If several rules would disturb a request, the first of these rules does.

    [[fault]]
    name = "lost answer"                       # shown in the header Svc-Fault
    route = "POST /v1/buckets/{bucket}/files"  # as in the OpenAPI document; without it, all below /v1
    when = "after"                             # fail or wait after executing the request; default: "before"
    cut = true                                 # close the connection without a response
    code = "storage_full"                      # or respond with this error
    details = { retry_after_seconds = 1 }      # details of that error
    delay_s = 2.0                              # wait before the response; also without `cut` and `code`
    skip = 0
    times = 1                                  # "always" for no limit
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from svc_daemon.errors import ERRORS
from svc_daemon.settings.limits import SettingError
from svc_daemon.wire.light.error_codes import ErrorCode
from svc_daemon.wire.light.field_errors import plain
from svc_daemon.wire.light.parsing import parse_toml

#: A rule without a route applies to every route that contains this text.
EVERY = " /v1/"
#: Maximum delay, in seconds.
LONGEST_DELAY_S = 3600


class FaultRule(BaseModel):
    """A rule from the file, in a `[[fault]]` section: which requests fail or wait, and how."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    name: Annotated[str, Field(pattern=r"^[ -~]{1,100}$")] = "fault"
    #: Method and path template; None for all requests below /v1.
    route: str | None = None
    when: Literal["before", "after"] = "before"
    cut: bool = False
    code: Annotated[ErrorCode, Field(strict=False)] | None = None
    details: dict[str, Any] = Field(default_factory=dict)
    delay_s: Annotated[float, Field(ge=0, le=LONGEST_DELAY_S, strict=False)] = 0
    skip: Annotated[int, Field(ge=0)] = 0
    times: Annotated[int, Field(ge=1)] | Literal["always"] = 1

    @model_validator(mode="after")
    def _does_one_thing(self) -> "FaultRule":
        if self.cut and self.code is not None:
            raise ValueError("`cut` and `code` exclude each other.")
        if not self.cut and self.code is None and not self.delay_s:
            raise ValueError("a fault needs `code`, `cut` or `delay_s`.")
        if self.code is not None and self.code not in ERRORS:
            raise ValueError(f"`{self.code}` is never the answer to a request.")
        return self


class _FaultFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    fault: list[FaultRule] = Field(default_factory=list)


class FaultsRefused(SettingError):
    """The file with the rules can't be used; the message says why."""


@dataclass(slots=True)
class FaultPlan:
    """The rules of a file with faults, and how many requests each rule has matched so far."""

    rules: tuple[FaultRule, ...]
    _met: dict[int, int] = field(default_factory=dict)

    def choose(self, route: str) -> FaultRule | None:
        """Count a request of this route. Return the rule that applies to it, or None."""
        for number, rule in enumerate(self.rules):
            if rule.route != route and not (rule.route is None and EVERY in route):
                continue
            met = self._met[number] = self._met.get(number, 0) + 1
            if met > rule.skip and (rule.times == "always" or met <= rule.skip + rule.times):
                return rule
        return None


def parse_faults(text: str, routes: Collection[str]) -> FaultPlan:
    """Parse a TOML file of rules. `routes` are the existing routes. Raises FaultsRefused."""
    try:
        rules = _FaultFile.model_validate(parse_toml(text)).fault
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise FaultsRefused(f"{place}: {plain(first['msg'])}") from error
    except ValueError as error:
        raise FaultsRefused(f"It is not valid TOML: {error}.") from error
    unknown = next((rule.route for rule in rules if rule.route is not None and rule.route not in routes), None)
    if unknown is not None:
        raise FaultsRefused(f"There is no route {unknown!r}; /openapi.json lists them, such as 'GET /v1/buckets'.")
    return FaultPlan(tuple(rules))
