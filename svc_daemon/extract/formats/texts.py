"""Plain text, and the decoding that all formats made of text share."""

from svc_daemon.core.documents import Document
from svc_daemon.core.text_encodings import text_encoding
from svc_daemon.extract import failures
from svc_daemon.extract.builders import LineDocument
from svc_daemon.extract.formats import Given


def read(given: Given) -> Document:
    """Paragraphs between blank lines."""
    text, warnings = decode(given.data)
    document = LineDocument(text)
    document.add_paragraphs("paragraph", 0, len(document.lines) - 1)
    return document.finish(warnings=warnings)


def decode(data: bytes) -> tuple[str, tuple[str, ...]]:
    """The text of bytes, and warnings where it had to be guessed; raises ExtractionFailed for binary bytes."""
    codec = text_encoding(data)
    if codec is None:
        raise failures.unsupported("The file is binary, not text.")
    try:
        return data.decode(codec), _guessed(codec)
    except UnicodeDecodeError:
        return _decode_flawed(data, codec)


def _guessed(codec: str) -> tuple[str, ...]:
    return ("The text is not UTF-8; it was read as Windows-1252.",) if codec == "cp1252" else ()


def _decode_flawed(data: bytes, codec: str) -> tuple[str, tuple[str, ...]]:
    text = data.decode(codec, "replace")
    places = text.count("\ufffd")
    return text, (f"{places} places of the text are not valid {codec.removesuffix('-sig')} and were replaced.",)
