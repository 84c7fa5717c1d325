"""Errors for documents without readable text, for the daemon and the child processes."""

from svc_daemon.wire.error_codes import SourceErrorCode

#: Retry only failures that the machine may have caused.
_RETRYABLE = frozenset({SourceErrorCode.EXTRACTION_CRASHED})


class ExtractionFailed(Exception):
    """No text can be extracted. `message` is a sentence for the user."""

    def __init__(self, code: SourceErrorCode, message: str, retryable: bool | None = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.retryable = code in _RETRYABLE if retryable is None else retryable


def no_text(message: str = "The document holds no text.") -> ExtractionFailed:
    return ExtractionFailed(SourceErrorCode.NO_EXTRACTABLE_TEXT, message)


def unsupported(message: str) -> ExtractionFailed:
    return ExtractionFailed(SourceErrorCode.UNSUPPORTED_FORMAT, message)


def unreadable(message: str) -> ExtractionFailed:
    return ExtractionFailed(SourceErrorCode.DOCUMENT_UNREADABLE, message)


def encrypted() -> ExtractionFailed:
    return ExtractionFailed(SourceErrorCode.DOCUMENT_ENCRYPTED, "The document needs a password; store it without one.")


def over_limit(message: str) -> ExtractionFailed:
    return ExtractionFailed(SourceErrorCode.EXTRACTION_LIMIT_EXCEEDED, message)


def crashed(message: str) -> ExtractionFailed:
    return ExtractionFailed(SourceErrorCode.EXTRACTION_CRASHED, message)
