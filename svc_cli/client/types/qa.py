"""Types of qa. Made from `svc_daemon.wire` by `python -m tests.rules.client_types`."""

from typing import Any, NotRequired, TypedDict


class QaCreateDict(TypedDict):
    """Body of `POST /v1/buckets/{bucket}/qa`."""

    alternate_questions: NotRequired[list[str]]
    """Other wordings of the question."""
    tags: NotRequired[list[str]]
    metadata: NotRequired[dict[str, Any]]
    replaces: NotRequired[str | None]
    mapping: NotRequired[str | None]
