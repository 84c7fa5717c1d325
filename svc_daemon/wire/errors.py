"""The envelope that carries an error (specification, Errors)."""

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
