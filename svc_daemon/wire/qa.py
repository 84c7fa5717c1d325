"""Questions and answers on the wire."""

from typing import Any

from pydantic import Field

from svc_daemon.wire.requests import RequestBody


class QaCreate(RequestBody):
    """Body of `POST /v1/buckets/{bucket}/qa`."""

    question: str
    answer: str
    #: Other ways to ask the same.
    alternate_questions: list[str] = Field(default_factory=list)
    tags: list[str] = Field(default_factory=list)
    metadata: dict[str, Any] = Field(default_factory=dict)
    replaces: str | None = None
    mapping: str | None = None
    dry_run: bool = False
    #: Refused: only imports and pages are called back.
    webhook: Any = None
