"""What a file name that was sent becomes; which names are refused is decided in `wire.file_names`."""

from svc_daemon.core.refusals import refusal
from svc_daemon.wire.file_names import MAX_NAME_BYTES, NameFlaw, clean_name, find_flaw

_SENTENCES = {
    NameFlaw.NOT_UTF8: "A file name must be valid Unicode.",
    NameFlaw.INVISIBLE: "A file name must not contain control, bidi or other invisible characters.",
    NameFlaw.NO_NAME: "A file name must not be empty or contain '..'.",
    NameFlaw.TOO_LONG: f"A file name must not be longer than {MAX_NAME_BYTES} bytes.",
}


def clean_file_name(text: str, path: str = "filename") -> str:
    """The last path component of `text` in NFC, at most 255 bytes of UTF-8.

    Raises ServiceError `invalid_request`, naming `path` as the field, for a name that is empty, holds a `..` component
    or invisible characters, or is too long.
    """
    if (flaw := find_flaw(text)) is not None:
        raise refusal(path, _SENTENCES[flaw])
    return clean_name(text)
