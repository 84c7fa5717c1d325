"""The body of a request to create a Q&A source."""

from typing import Any

from pydantic import Field

from svc_daemon.wire.requests import RequestBody


class QaCreate(RequestBody):
    """Body of `POST /v1/buckets/{bucket}/qa`."""

    question: str
    answer: str
    #: Other wordings of the question.
    alternate_questions: list[str] = Field(default_factory=list)
    tags: list[str] = Field(default_factory=list)
    metadata: dict[str, Any] = Field(default_factory=dict)
    replaces: str | None = None
    mapping: str | None = None
    dry_run: bool = False
    #: Always refused: only URL imports can have a webhook.
    webhook: Any = None
