"""Detects the kind of document that a zip archive is, from its own list of types or the names of its members."""

import re
import zlib
from collections.abc import Collection
from io import BytesIO
from zipfile import BadZipFile, ZipFile

_ZIP = "application/zip"
_OPEN_XML = "application/vnd.openxmlformats-officedocument"
#: Names in a zip archive, or their beginnings, in small letters, that show the kind of document.
_ZIP_MEMBERS = {
    "word/": f"{_OPEN_XML}.wordprocessingml.document",
    "ppt/": f"{_OPEN_XML}.presentationml.presentation",
    "xl/": f"{_OPEN_XML}.spreadsheetml.sheet",
    "meta-inf/container.xml": "application/epub+zip",
}
#: The type of the main part of an Office file, as its list of types has it.
_MAIN_PART = re.compile(
    rb"application/vnd\.(?:openxmlformats-officedocument\.\w+\.\w+|ms-\w+\.\w+(\.binary)?\.macroEnabled(?:Template)?)\.main",
    re.IGNORECASE,
)
#: Lists of types are read up to here.
_TYPES_BYTES = 1024 * 1024
#: What an OpenDocument says that it is.
_ODF_TYPE = re.compile(rb"application/vnd\.oasis\.opendocument\.[a-z]+(?:-[a-z-]+)?")
#: The names are looked for in so many leading bytes if the archive has lost its list of members.
_HEAD_BYTES = 64 * 1024
_LOCAL_NAME = re.compile(rb"PK\x03\x04.{22}(..)..", re.DOTALL)


def zip_type(data: bytes, known: Collection[str]) -> str:
    """Return the media type of a zip archive: one of the known types of documents, or that of any archive."""
    declared = re.match(rb"PK\x03\x04.{26}mimetype([\w./+-]+?)(?=PK|\x00)", data[:200], re.DOTALL)
    if declared:
        media_type = declared[1].decode("ascii")
        return media_type if media_type in known else _ZIP
    try:
        with ZipFile(BytesIO(data)) as archive:
            names = archive.namelist()
            for name in names:
                plain = _plain_name(name)
                if plain in {"mimetype", "meta-inf/manifest.xml", "[content_types].xml"}:
                    with archive.open(name) as content:
                        listed = content.read(_TYPES_BYTES)
                    # The type of an OpenDocument may also be compressed, or only in the list of parts.
                    named = _ODF_TYPE.search(listed[:4096]) if plain.startswith("m") else None
                    if named and named[0].decode() in known:
                        return named[0].decode()
                    if main := main_part_type(listed, known):
                        return main
    except (BadZipFile, NotImplementedError, ValueError, RuntimeError, OSError, EOFError, zlib.error):
        # The archive is truncated or broken: use the names in its local headers.
        head = data[:_HEAD_BYTES]
        found = ((header.end(), int.from_bytes(header[1], "little")) for header in _LOCAL_NAME.finditer(head))
        names = [head[start : start + size].decode("utf-8", "replace") for start, size in found]
    plain_names = [*map(_plain_name, names)]
    kinds = (
        media_type for name in plain_names for member, media_type in _ZIP_MEMBERS.items() if name.startswith(member)
    )
    return next(kinds, _ZIP)


def main_part_type(xml: bytes, known: Collection[str]) -> str | None:
    """Return the media type of an Office file whose parts have the types in this XML."""
    # In UTF-16, every second byte is NUL.
    for main in _MAIN_PART.finditer(xml.replace(b"\0", b"")):
        media_type = main[0].decode().lower().removesuffix(".main").replace("macroenabledtemplate", "macroenabled")
        media_type += ".12" if media_type.endswith("macroenabled") else ""
        if media_type in known:
            return media_type
    return None


def _plain_name(name: str) -> str:
    """Return the name of an archive's member as it is compared: some programs write other slashes and capitals."""
    return name.replace("\\", "/").removeprefix("./").lstrip("/").lower()
