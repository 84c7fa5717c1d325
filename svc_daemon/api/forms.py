"""Reads multipart forms with small text fields and one file. The file is stored while it arrives."""

import re
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import Request

from svc_daemon.api.bodies import content_length, refuse_encoding
from svc_daemon.core.json_bodies import refusal
from svc_daemon.core.uploads.source_fields import clean_file_name
from svc_daemon.errors import ServiceError
from svc_daemon.wire.light.error_codes import ErrorCode

#: The name that the form's file part must have.
FILE_FIELD = "file"

#: Number of bytes of the file that are collected before they are passed to the sink.
PIECE_BYTES = 256 * 1024
MAX_FIELDS = 16
MAX_FIELD_BYTES = 16 * 1024
#: Maximum size of all fields, boundaries and headers together.
OVERHEAD_BYTES = 1024 * 1024

#: The usual form of Content-Disposition. Other forms are parsed by the library, which takes ten times as long.
_USUAL_DISPOSITION = re.compile(rb'form-data; name="([^"\\;]+)"(?:; filename="([^"\\;%]+)")?')
_FILE_NAME = re.compile(rb';\s*filename\s*=\s*"((?:[^"\\]|\\.)*)"\s*(?:;|$)', re.IGNORECASE | re.DOTALL)
#: Characters of a file name as clients write them: with a backslash, or as browsers and curl do, percent-encoded. Of
#: the latter, no others are decoded, since browsers leave a percent sign as it is.
_ESCAPED = re.compile(rb'\\(["\\%])|%(22|0[Aa]|0[Dd])')
#: The rest of a boundary's line, with the blanks that RFC 2046 allows, or the end of the form.
_LINE = re.compile(rb"[ \t]*\r\n|--")
_FOLD = re.compile(rb"\r\n[ \t]+")
#: Maximum size of the headers of a part.
MAX_PART_HEAD_BYTES = 16 * 1024
_EXTENDED_NAME = re.compile(rb";\s*filename\*", re.IGNORECASE)
_MEDIA_TYPE = re.compile(rb"[!-.0-~]+/[!-.0-:<-~]+(?:\s*;[ -~]*)?")
_MAX_MEDIA_TYPE_BYTES = 255
#: Transfer encodings that don't change the bytes. Others, such as base64, would be stored undecoded.
_PLAIN_ENCODINGS = {b"7bit", b"8bit", b"binary"}


class FileSink(Protocol):
    """Stores the bytes of a form's file."""

    async def append(self, data: bytes) -> None: ...

    async def discard(self) -> None:
        """Discard all bytes. Called at most once, if the form can't be read."""


SinkT = TypeVar("SinkT", bound=FileSink)


@dataclass(frozen=True, slots=True, kw_only=True)
class FormFile(Generic[SinkT]):
    """The file of a form. `sink` has received all bytes of the file."""

    filename: str
    #: The media type that the client declared, with parameters; None if the client declared none.
    content_type: str | None
    #: 0 for an empty file, which the caller must refuse.
    size_bytes: int
    sink: SinkT


@dataclass(frozen=True, slots=True, kw_only=True)
class Form(Generic[SinkT]):
    """A completely received form: text fields and a file."""

    fields: dict[str, str]
    file: FormFile[SinkT]


async def receive_form(request: Request, open_sink: Callable[[], SinkT], max_file_bytes: int) -> Form[SinkT]:
    """Read the form in the body. `open_sink` is called at most once.

    Raises ServiceError: `unsupported_media_type`, `file_too_large`, `request_too_large` or `invalid_request`. Raises
    ClientDisconnect, and exceptions of the sink. After any exception, the sink is discarded.
    """
    kind, options = parse_options_header(request.headers.get("content-type"))
    if kind != b"multipart/form-data":
        raise ServiceError(ErrorCode.UNSUPPORTED_MEDIA_TYPE, "The body must be multipart/form-data.")
    refuse_encoding(request)
    boundary = options.get(b"boundary", b"")
    # RFC 2046, section 5.1.1, allows at most 70 characters.
    if not 1 <= len(boundary) <= 70:
        raise refusal("", "The Content-Type needs a boundary of 1 to 70 characters.")
    declared = content_length(request)
    if declared is not None and declared > max_file_bytes + OVERHEAD_BYTES:
        raise _file_too_large(max_file_bytes)
    intake = _Intake(_FormReader(boundary, max_file_bytes), open_sink, max_file_bytes + OVERHEAD_BYTES)
    try:
        async with aclosing(request.stream()) as chunks:
            async for chunk in chunks:
                await intake.take(chunk)
        return await intake.finish()
    finally:
        await intake.close()


def _file_too_large(most: int) -> ServiceError:
    return ServiceError(ErrorCode.FILE_TOO_LARGE, f"The file is larger than {most:,} bytes.", max_bytes=most)


class _Intake(Generic[SinkT]):
    """Passes file bytes from the reader to the sink. Discards the sink if the form can't be read."""

    def __init__(self, reader: "_FormReader", open_sink: Callable[[], SinkT], max_body_bytes: int) -> None:
        self._reader = reader
        self._open_sink = open_sink
        self._max_body_bytes = max_body_bytes
        self._body_bytes = 0
        self._sink: SinkT | None = None

    async def take(self, chunk: bytes) -> None:
        self._body_bytes += len(chunk)
        self._reader.feed(chunk)
        if self._body_bytes > self._max_body_bytes:
            raise ServiceError(ErrorCode.REQUEST_TOO_LARGE, max_bytes=self._max_body_bytes)
        if self._reader.waiting_bytes >= PIECE_BYTES:
            await self._store()

    async def finish(self) -> Form[SinkT]:
        filename = self._reader.finish()
        sink = await self._store()
        self._sink = None
        file = FormFile(
            filename=filename, content_type=self._reader.content_type, size_bytes=self._reader.file_bytes, sink=sink
        )
        return Form(fields=self._reader.fields, file=file)

    async def close(self) -> None:
        if self._sink is not None:
            await self._sink.discard()

    async def _store(self) -> SinkT:
        if self._sink is None:
            self._sink = self._open_sink()
        if self._reader.waiting_bytes:
            await self._sink.append(self._reader.take_file_bytes())
        return self._sink


class _FormReader:
    """Collects the fields of a form, and the name, media type and bytes of its file.

    The parser calls the methods that begin with `on_`.
    """

    def __init__(self, boundary: bytes, max_file_bytes: int) -> None:
        self.fields: dict[str, str] = {}
        self.filename: str | None = None
        self.content_type: str | None = None
        self.file_bytes = 0
        self.waiting_bytes = 0
        self._max_file_bytes = max_file_bytes
        self._waiting: list[bytes] = []
        self._ended = False
        self._headers: dict[bytes, bytes] = {}
        self._header_name = self._header_value = b""
        #: The name of the field in the current part; None if the part is the file.
        self._field: str | None = None
        self._field_data = b""
        self._parser = _parser(boundary, self)
        self._delimiter = b"\r\n--" + boundary
        #: Received bytes that may be the beginning of a delimiter or of headers. The first one needs no line before it.
        self._held = b"\r\n"
        #: Whether the first delimiter has come. Bytes in front of it are the preamble, which has no meaning.
        self._begun = False

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the body.

        The parser takes no preamble, no blanks after the first boundary and no folded headers, so these are left out.
        """
        data = self._held + chunk
        begin = at = 0
        # Where the next headers end. Looked for once, and not after every delimiter of a hostile preamble.
        end = 0
        while (at := data.find(self._delimiter, at)) >= 0:
            after = at + len(self._delimiter)
            line = _LINE.match(data, after)
            if line is not None and line[0] == b"--":
                self._begun, at = True, len(data)
                break
            if line is not None and 0 <= end < line.end() - 2:
                end = data.find(b"\r\n\r\n", line.end() - 2)
            if line is not None and end >= 0:
                self._write(data[begin:at])
                self._begun = True
                self._write(self._delimiter + b"\r\n" + _FOLD.sub(b" ", data[line.end() : end + 2]) + b"\r\n")
                begin = at = end + 4
            elif len(data) - at <= MAX_PART_HEAD_BYTES and (line is not None or not data[after:].strip(b" \t\r-")):
                break
            else:
                at = after
        if at < 0:
            at = data.rfind(b"\r", max(begin, len(data) - len(self._delimiter)))
            at = at if at >= 0 and self._delimiter.startswith(data[at:]) else len(data)
        self._write(data[begin:at])
        self._held = data[at:]

    def _write(self, data: bytes) -> None:
        if not self._begun:
            return
        try:
            self._parser.write(data)
        except FormParserError as error:
            raise refusal("", "The form has a part whose headers or boundary can't be read.") from error

    def finish(self) -> str:
        """Return the file's name. Raises 400 `invalid_request` if the form is incomplete."""
        if not self._begun:
            raise refusal("", "The body is not a multipart form with the boundary of its Content-Type.")
        if not self._ended:
            raise refusal("", "The form ends before its closing boundary.")
        if self.filename is None:
            raise refusal(FILE_FIELD, "The form has no file part named 'file'.")
        return self.filename

    def take_file_bytes(self) -> bytes:
        data = self._waiting[0] if len(self._waiting) == 1 else b"".join(self._waiting)
        self._waiting.clear()
        self.waiting_bytes = 0
        return data

    def on_part_begin(self) -> None:
        self._headers = {}

    def on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._header_name += data[start:end]

    def on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header_value += data[start:end]

    def on_header_end(self) -> None:
        name = self._header_name.lower()
        if name in self._headers:
            raise refusal("", f"A part of the form has two {name.decode('latin-1')} headers.")
        self._headers[name] = self._header_value
        self._header_name = self._header_value = b""

    def on_headers_finished(self) -> None:
        disposition = self._headers.get(b"content-disposition", b"")
        raw_name, filename = _parse_disposition(disposition)
        name = _text("", raw_name)
        if self._headers.get(b"content-transfer-encoding", b"binary").lower() not in _PLAIN_ENCODINGS:
            raise refusal(name, "A part of the form has a Content-Transfer-Encoding; send its bytes as they are.")
        if filename is None:
            if _EXTENDED_NAME.search(disposition):
                raise refusal(name, "A part has only filename*, which forms don't use; send filename.")
            self._begin_field(name)
            return
        if name != FILE_FIELD:
            raise refusal(name, "Only the part named 'file' may be a file.")
        if self.filename is not None:
            raise refusal(FILE_FIELD, "The form has two file parts; send one file a call.")
        self.filename = clean_file_name(_text("filename", filename))
        self._field = None
        content_type = self._headers.get(b"content-type")
        if content_type is None:
            return
        if len(content_type) > _MAX_MEDIA_TYPE_BYTES or not _MEDIA_TYPE.fullmatch(content_type.strip()):
            raise refusal("content_type", "The Content-Type of the file part is not a media type.")
        self.content_type = content_type.strip().decode("ascii")

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        if self._field is not None:
            self._field_data += data[start:end]
            if len(self._field_data) > MAX_FIELD_BYTES:
                raise refusal(self._field, f"The field is larger than {MAX_FIELD_BYTES:,} bytes.")
            return
        self.file_bytes += end - start
        if self.file_bytes > self._max_file_bytes:
            raise _file_too_large(self._max_file_bytes)
        self.waiting_bytes += end - start
        self._waiting.append(data[start:end])

    def on_part_end(self) -> None:
        if self._field is not None:
            self.fields[self._field] = _text(self._field, self._field_data)

    def on_end(self) -> None:
        self._ended = True

    def _begin_field(self, name: str) -> None:
        if name == FILE_FIELD:
            raise refusal(FILE_FIELD, "The part named 'file' needs a filename.")
        if name == "team_id":
            raise refusal("team_id", "The team follows from the API key; team_id is not accepted.")
        if name in self.fields:
            raise refusal(name, "The form has the field twice.")
        if len(self.fields) >= MAX_FIELDS:
            raise refusal(name, f"The form has more than {MAX_FIELDS} fields.")
        self._field, self._field_data = name, b""


def _parser(boundary: bytes, reader: _FormReader) -> MultipartParser:
    return MultipartParser(
        boundary,
        {
            "on_part_begin": reader.on_part_begin,
            "on_header_field": reader.on_header_field,
            "on_header_value": reader.on_header_value,
            "on_header_end": reader.on_header_end,
            "on_headers_finished": reader.on_headers_finished,
            "on_part_data": reader.on_part_data,
            "on_part_end": reader.on_part_end,
            "on_end": reader.on_end,
        },
    )


def _parse_disposition(header: bytes) -> tuple[bytes, bytes | None]:
    """Return the name of a part, and its file name or None."""
    usual = _USUAL_DISPOSITION.fullmatch(header)
    if usual:
        return usual[1], usual[2]
    kind, options = parse_options_header(header)
    if kind != b"form-data" or b"name" not in options:
        raise refusal("", "A part of the form has no Content-Disposition: form-data with a name.")
    found = _FILE_NAME.search(header)
    if found is None or (b"\\\\" not in found[1] and (found[1][1:3] == b":\\" or b"%" not in found[1])):
        # The library also knows the whole paths that old browsers send.
        return options[b"name"], options.get(b"filename")
    return options[b"name"], _ESCAPED.sub(lambda each: each[1] or bytes.fromhex(each[2].decode()), found[1])


def _text(path: str, data: bytes) -> str:
    """Decode a field or a name. Refuse NUL, where SQLite would silently truncate the text."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise refusal(path, "The form has text that is not UTF-8.") from error
    if "\0" in text:
        raise refusal(path, "The form has text with NUL in it.")
    return text
