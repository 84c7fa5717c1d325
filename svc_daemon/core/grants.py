"""What a key is granted, and the rule that no key grants more than it has.

    capabilities    named one by one or by a preset; each must be the maker's own
    buckets         not sent: those of the maker; else each must be within the maker's reach
    models          not sent: those of the maker; else each must be one that the maker may use
    expires_at      not sent: that of the maker; else not after it

A key sees and revokes the keys that it could have made, and itself: one that is kept to a bucket can't end the team's
admin key. Expiry is left out of that rule, so that a key that expires can still revoke one that doesn't.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from svc_daemon.core import api_keys
from svc_daemon.core.model_ids import agent_of, is_allowed
from svc_daemon.core.refusals import refusal
from svc_daemon.core.times import from_text, to_text
from svc_daemon.errors import ServiceError
from svc_daemon.wire.codes import ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What a key may do, where, with which models, and until when."""

    capabilities: tuple[str, ...]
    #: Bucket ids; None is all.
    buckets: tuple[str, ...] | None = None
    #: Model ids as they were named; None is all.
    models: tuple[str, ...] | None = None
    #: As stored; None is for ever.
    expires_at: str | None = None


def check_name(name: str) -> None:
    """Raises `invalid_request` for a name that nobody could read."""
    if not name.strip() or not name.isprintable():
        raise refusal("name", "must not be blank, and has no control characters.")


def choose_capabilities(preset: str | None, named: Sequence[str] | None) -> tuple[str, ...]:
    """Those of the preset, or those that are named, each once; raises `invalid_request`."""
    if (preset is None) == (named is None):
        raise refusal("capabilities", f"send either these or a preset ({', '.join(api_keys.PRESETS)}).")
    if preset is not None:
        if preset not in api_keys.PRESETS:
            raise refusal("preset", f"must be one of {', '.join(api_keys.PRESETS)}, not {preset!r}.")
        return api_keys.PRESETS[preset]
    for capability in named or ():
        if capability not in api_keys.CAPABILITIES:
            raise refusal("capabilities", f"there is no {capability!r}; there are {', '.join(api_keys.CAPABILITIES)}.")
    return tuple(dict.fromkeys(named or ()))


def choose_expiry(text: str | None, now: datetime) -> str | None:
    """The moment as it is stored; raises `invalid_request` for what is no moment with a time zone, or is past."""
    if text is None:
        return None
    try:
        moment = from_text(text)
        stored = to_text(moment)
    except (ValueError, OverflowError) as error:
        message = f"must be a moment with a time zone, such as 2030-01-31T12:00:00Z, not {text!r}."
        raise refusal("expires_at", message) from error
    if moment <= now:
        raise refusal("expires_at", f"must lie ahead; {text!r} is past.")
    return stored


def narrow(maker: Grant, asked: Grant) -> Grant:
    """What the new key gets; raises where it would be more than its maker has. The buckets have been judged before."""
    for capability in asked.capabilities:
        if capability not in maker.capabilities:
            raise ServiceError(
                ErrorCode.FORBIDDEN_PROJECT_KEY,
                f"A key grants only what it has; this one lacks the capability {capability}.",
                required_capability=capability,
            )
    for model in asked.models or ():
        if not is_allowed(maker.models, agent_of(model)):
            raise ServiceError(
                ErrorCode.MODEL_NOT_ALLOWED, f"A key grants only what it has; it may not use {model!r}.", model=model
            )
    if asked.expires_at and maker.expires_at and asked.expires_at > maker.expires_at:
        raise refusal("expires_at", f"must not be after the asking key's own, {maker.expires_at}.")
    return replace(
        asked,
        buckets=maker.buckets if asked.buckets is None else asked.buckets,
        models=maker.models if asked.models is None else asked.models,
        expires_at=asked.expires_at or maker.expires_at,
    )


def covers(maker: Grant, other: Grant) -> bool:
    """Whether `maker` could have made a key with the grant of `other`, whenever that one expires."""
    return (
        set(other.capabilities) <= set(maker.capabilities)
        and _is_within(other.buckets, maker.buckets)
        and _is_within(_agents(other.models), _agents(maker.models))
    )


def _is_within(inner: Sequence[str] | None, outer: Sequence[str] | None) -> bool:
    return outer is None or (inner is not None and set(inner) <= set(outer))


def _agents(models: Sequence[str] | None) -> list[str] | None:
    return None if models is None else [agent_of(model) for model in models]
