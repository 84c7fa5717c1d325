"""The envelope that carries an error (specification, Errors)."""

from typing import Any

from pydantic import BaseModel

from svc_daemon.wire.codes import ErrorCode as ErrorCode
from svc_daemon.wire.codes import SourceErrorCode as SourceErrorCode


class ErrorBody(BaseModel):
    code: str
    message: str
    retryable: bool
    details: dict[str, Any]


class ErrorEnvelope(BaseModel):
    """Every error of the search, ingest and manage surfaces."""

    error: ErrorBody
    request_id: str
