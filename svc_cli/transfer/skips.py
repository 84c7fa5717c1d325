"""Why files of a folder are left out, and what title each file gets."""

import os
import re
import stat
import unicodedata
import zlib
from pathlib import Path, PurePath
from typing import NamedTuple

from svc_cli.errors import FileRefused
from svc_cli.transfer.contents import opened
from svc_cli.transfer.ignores import IgnoreRules, has_twins
from svc_cli.transfer.rooted_files import Root
from svc_daemon.wire import JsonMapping
from svc_daemon.wire.light.names import NameFlaw, find_flaw, find_odd_character

UNREADABLE_TYPE = "type can't be read"
#: Pictures in folders are mostly no scans, and reading one takes seconds.
PICTURE = "picture: read with --images, or images = true in a mapping"
EMPTY_PICTURE = "picture without text"
#: The extra whose formats are pictures.
_PICTURE_EXTRA = "ocr"
_PICTURES = frozenset({".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp"})
SPELLED_TWICE = "another file has the same name in a different Unicode spelling"
IN_UNREAD_FOLDER = "its folder can't be read"
PLACEHOLDER = "only a placeholder: its content is elsewhere, as in Git LFS or a cloud drive"
#: A pointer of Git LFS, by itself in a file, and one of git-annex.
_POINTER = re.compile(
    rb"version https://(?:git-lfs|hawser)\.github\.com/spec/v1\n(?:ext-.*\n)*oid sha256:[0-9a-f]{64}\nsize \d+\n?"
    rb"|(?:\.\./)*(?:\.git)?/annex/objects/\S+\n?"
).fullmatch
#: The size that a pointer never reaches.
POINTER_BYTES = 1024
#: What Google Drive has in a folder for each document that is kept online.
_ONLINE_FILE = re.compile(
    r".*\.g(?:doc|draw|form|jam|link|map|script|sheet|site|slides|table|vids)", re.IGNORECASE
).fullmatch
#: What programs leave behind for a while, or for themselves.
LEFTOVER = "left behind by a program"
#: Lock, swap, backup, auto-save and part files of common programs, and what file managers write.
_LEFTOVER_FILE = re.compile(
    r"~\$.*|.*~|#.*#|.*___jb_(?:tmp|old|bak)___|(?:eh)?thumbs(?:_vista)?\.db|photothumb\.db|desktop\.ini"
    r"|.*\.(?:tmp|temp|bak|orig|rej|sw[nop]|kate-swp|autosave|save|asd|wbk|xlk|asv|sv\$|lck|laccdb|ldb|idlk|dwl2?)"
    r"|.*\.(?:part|partial|filepart|crdownload|download|opdownload|crswap|aria2|ytdl|!ut|!qb|unison|textclipping)",
    re.IGNORECASE,
).fullmatch
#: Folders of file managers and systems, and those that a program saves to before it renames them.
_LEFTOVER_FOLDER = re.compile(
    r"__macosx|\$recycle\.bin|#recycle|system volume information|@eadir|lost\+found|.*\.download"
    r"|.*\.sb-[0-9a-f]{8}-\w{6}",
    re.IGNORECASE,
).fullmatch
#: A document that needs no extension to be known: a PDF, or an Office, OpenDocument or EPUB file.
_DOCUMENT = re.compile(
    rb"%PDF-|PK\x03\x04.{26}(?:\[Content_Types\]\.xml|mimetypeapplication/(?:vnd\.oasis|epub)|_rels/|docProps/|word/|xl/|ppt/)",
    re.DOTALL,
)
_ASCII = bytes((*b"\t\n\f\r\x1b", *range(32, 127)))
_CONTROLS = bytes(code for code in range(128) if code not in _ASCII)
#: Bytes to read to decide whether a file is text.
SNIFF_BYTES = 8192

#: Maps each reason, up to a colon in its text, to the `reason_code` in JSON.
CODES = {
    "dotfile": "dotfile",
    "ignored": "ignored",
    LEFTOVER: "program_leftover",
    "not included": "not_included",
    "link": "link",
    "link out of the folder": "link_outside",
    "link in a circle": "link_loop",
    "link leads nowhere": "link_broken",
    "not a regular file": "not_a_file",
    "empty": "empty",
    "too large": "too_large",
    "path is too long": "path_too_long",
    UNREADABLE_TYPE: "type_unreadable",
    "only a placeholder": "placeholder",
    "picture": "picture",
    EMPTY_PICTURE: "picture_empty",
    "can't be read": "unreadable",
    NameFlaw.NO_NAME: "name_invalid",
    NameFlaw.NOT_UTF8: "name_not_utf8",
    NameFlaw.TOO_LONG: "name_too_long",
    NameFlaw.INVISIBLE: "name_invisible",
    SPELLED_TWICE: "name_taken",
    "left out with its folder": "folder_left_out",
    IN_UNREAD_FOLDER: "folder_unreadable",
}


def readable_extensions(limits: JsonMapping, *, pictures: bool = False) -> frozenset[str]:
    """Return the extensions that the service can read, such as `.pdf`; with `pictures`, only those of pictures."""
    formats = [form for form in limits["formats"] if not pictures or form.get("extra") == _PICTURE_EXTRA]
    return frozenset(f".{each.lower().lstrip('.')}" for form in formats for each in form["extensions"])


def is_empty_picture(path: str, error: JsonMapping) -> bool:
    """Whether the error says that no text was recognised in a picture."""
    return error.get("code") == "no_extractable_text" and PurePath(path).suffix.lower() in _PICTURES


class Skip(NamedTuple):
    """A file or folder that is left out; a folder's path ends in `/`."""

    path: str
    reason: str
    #: Set if the file counts as failed.
    error_code: str | None = None

    @classmethod
    def unreadable(cls, path: str, error: Exception) -> "Skip":
        """Return the skip for an unreadable path. The file counts as failed, unless it no longer exists."""
        is_gone = isinstance(error, FileNotFoundError)
        why = (error.strerror if isinstance(error, OSError) else None) or f"{type(error).__name__}: {error}"
        return cls(path, f"can't be read: {why}", None if is_gone else "svc_file_unreadable")


def code_of(reason: str) -> str:
    """Return the `reason_code` of a reason."""
    words = reason.partition(":")[0]
    return CODES.get(words) or re.sub(r"\W+", "_", words).strip("_").lower()


class Titles:
    """Assigns titles to paths, so that two Unicode spellings of a name get different titles."""

    def __init__(self) -> None:
        self._first: dict[str, str] = {}

    def name(self, path: str) -> str:
        """Return the title of a path. If another path has the same title, non-ASCII characters are escaped."""
        title = composed(path)
        if not has_twins(title) or self._first.setdefault(title, path) == path:
            return title
        return path.encode("ascii", "backslashreplace").decode()


def composed(path: str) -> str:
    """Convert a path to a title that is the same on all systems: `/`-separated and in Unicode NFC."""
    if path.isascii() and os.sep == "/":
        return path
    return unicodedata.normalize("NFC", path if os.sep == "/" else path.replace(os.sep, "/"))


def is_utf8(name: str) -> bool:
    """Whether a file name is UTF-8."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def reason_by_name(name: str, path: str, rules: IgnoreRules, *, is_folder: bool) -> str | None:
    """Return why a file or folder is left out because of its name or path; None if it is not."""
    if name.startswith("."):
        return "dotfile"
    rule = rules.find(path, is_folder=is_folder) if rules.layers else None
    if rule is not None and not rule[1].keeps:
        return "ignored"
    if rule is None and (_LEFTOVER_FOLDER if is_folder else _LEFTOVER_FILE)(name):
        return LEFTOVER
    if rule is None and not is_folder and _ONLINE_FILE(name):
        return PLACEHOLDER
    flaw = find_odd_character(name) if is_folder else find_flaw(name)
    return None if flaw is None else flaw.value


def reason_by_facts(title: str, facts: os.stat_result, max_bytes: int, max_path_characters: int) -> str | None:
    """Return why a file is left out because of its metadata or title; None if it is not."""
    if not stat.S_ISREG(facts.st_mode):
        return "not a regular file"
    if facts.st_size > max_bytes:
        return "too large"
    if len(title) > max_path_characters:
        return "path is too long"
    return None if facts.st_size else "empty"


def is_empty(root: Root, place: str) -> bool:
    """Whether a file of size 0 is empty. Some file systems, such as /proc, give files with content no size."""
    try:
        with opened(Path(place), root) as file:
            return not file.read(1)
    except FileRefused:
        return True


def leads_to_folder(link: Path) -> bool:
    """Whether a link points to a folder; False if it can't be followed."""
    try:
        return link.is_dir()
    except OSError:
        return False


def reason_by_type(
    name: str, extensions: frozenset[str], pictures: frozenset[str], root: Root, place: str
) -> str | None:
    """Return why a file is left out because of its type, judged by its extension or first bytes; None if it is not.

    `pictures` are the extensions of pictures, if these are left out.
    """
    suffixes = PurePath(name).suffixes
    ends = {"".join(suffixes[-1:]).lower(), "".join(suffixes[-2:]).lower()}
    if not pictures.isdisjoint(ends):
        return PICTURE
    if not extensions.isdisjoint(ends):
        return None
    try:
        with opened(Path(place), root) as file:
            start = file.read(SNIFF_BYTES) or b""  # None if the file gives nothing at the moment
    except FileRefused:
        return None  # the error is reported when the file is read
    is_document = not suffixes and _DOCUMENT.match(start) is not None
    is_readable = is_document or is_text(start) or is_compressed_text(start)
    return None if is_readable else UNREADABLE_TYPE


def is_compressed_text(start: bytes) -> bool:
    """Whether the first bytes of a file are those of a gzip file with a text, and not with a tar or a document."""
    try:
        expanded = zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(start, SNIFF_BYTES)
    except zlib.error:
        return False
    return bool(expanded) and is_text(expanded) and not expanded.startswith(b"%PDF-")


def is_pointer(data: bytes | None) -> bool:
    """Whether these are all bytes of a file, and name the content that a program has not fetched."""
    return data is not None and len(data) < POINTER_BYTES and _POINTER(data) is not None


def holds_pointer(root: Root, place: str) -> bool:
    """Whether a file has only a pointer to its content; False if it can't be read."""
    try:
        with opened(Path(place), root) as file:
            return is_pointer(file.read(POINTER_BYTES))
    except FileRefused:
        return False


def has_placeholder(path: Path) -> bool:
    """Whether iCloud has left a placeholder for this file, which it has removed from this machine."""
    return os.path.lexists(path.with_name(f".{path.name}.icloud"))


def is_text(start: bytes) -> bool:
    """Whether the first bytes of a file are text: in UTF-8, perhaps cut within a character, or mostly in ASCII."""
    if b"\0" in start:
        return False
    try:
        start.decode("utf-8")
    except UnicodeDecodeError as error:
        is_cut = error.start >= len(start) - 3 and len(start) == SNIFF_BYTES
        # Compressed or encrypted data has many control characters, and few of ASCII.
        controls, ascii_ = (len(start) - len(start.translate(None, each)) for each in (_CONTROLS, _ASCII))
        return is_cut or (controls * 100 <= len(start) and ascii_ * 2 > len(start))
    return True
