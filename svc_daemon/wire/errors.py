"""The two envelopes that carry an error (specification, Errors)."""

from typing import Any

from pydantic import BaseModel


class ErrorBody(BaseModel):
    code: str
    message: str
    retryable: bool
    details: dict[str, Any]


class ErrorEnvelope(BaseModel):
    """Every error of the search, ingest and manage surfaces."""

    error: ErrorBody
    request_id: str


class OpenAIErrorBody(BaseModel):
    code: str
    message: str
    #: Such as `invalid_request_error`; what OpenAI's clients sort errors by besides the status.
    type: str
    #: The field of the request that is wrong, dotted; null where it is no single one.
    param: str | None


class OpenAIError(BaseModel):
    """Every error of the routes that OpenAI's clients call."""

    error: OpenAIErrorBody
