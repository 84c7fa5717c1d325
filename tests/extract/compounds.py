"""Builds compound files, and the DOC, PPT and MSG files that they hold."""

import struct
from collections.abc import Mapping, Sequence

_END, _FREE = 0xFFFFFFFE, 0xFFFFFFFF
_SECTOR = 512


def make_compound(streams: Mapping[str, bytes]) -> bytes:
    """A compound file with these streams, by their paths. All are in sectors of the usual size."""
    nodes: list[tuple[str, int, str]] = [("Root Entry", 5, "")]
    folders = dict.fromkeys(path.rpartition("/")[0] for path in streams if "/" in path)
    nodes += [(folder, 1, "") for folder in folders]
    nodes += [(path.rpartition("/")[2], 2, path) for path in streams]
    parents = [None, *("" for _ in folders), *(path.rpartition("/")[0] for path in streams)]
    body, fat, starts = bytearray(), list[int](), dict[str, int]()

    def add(data: bytes) -> int:
        start, count = len(fat), max(1, -(-len(data) // _SECTOR))
        fat.extend([*range(start + 1, start + count), _END])
        body.extend(data.ljust(count * _SECTOR, b"\0"))
        return start

    for path, data in streams.items():
        starts[path] = add(data)
    entries = bytearray()
    for number, (name, kind, path) in enumerate(nodes):
        folder = "" if kind == 5 else name
        child = next((at for at, parent in enumerate(parents) if parent == folder and kind != 2), _FREE)
        right = next((at for at in range(number + 1, len(nodes)) if number and parents[at] == parents[number]), _FREE)
        encoded = name.encode("utf-16-le")
        entries += encoded.ljust(64, b"\0") + struct.pack("<HBB", len(encoded) + 2, kind, 1)
        entries += struct.pack("<III", _FREE, right, child) + bytes(36)
        entries += struct.pack("<IQ", starts.get(path, _END), len(streams.get(path, b"")))
    directory = add(bytes(entries))
    fat_sector = len(fat)
    fat += [0xFFFFFFFD]
    packed_fat = struct.pack(f"<{len(fat)}I", *fat).ljust(_SECTOR, b"\xff")
    head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<HHHHH6xII", 62, 3, 0xFFFE, 9, 6, 0, 1)
    head += struct.pack("<IIIIIIII", directory, 0, 0, _END, 0, _END, 0, fat_sector)
    return head.ljust(_SECTOR, b"\xff") + bytes(body) + packed_fat


def make_doc(
    *parts: str, flags: int = 0, looks: Sequence[tuple[int, int, int]] = (), styles: Mapping[int, bytes] | None = None
) -> bytes:
    """A DOC file. `parts` are its text, footnotes, headers, macros, comments and so on.

    `looks` gives a property to the characters from the first up to the second place, and `styles` the style and the
    properties of each paragraph that ends at this place.
    """
    text, first = "".join(parts), 1024
    ends = [at + 1 for at, letter in enumerate(text) if letter in "\r\x07\x0c"] or [len(text)]
    fib = bytearray(1024)
    struct.pack_into("<HH2xH2xH", fib, 0, 0xA5EC, 193, 0x409, flags)
    struct.pack_into(f"<{len(parts)}I", fib, 0x4C, *map(len, parts))
    packed = text.encode("utf-16-le")
    body = bytes(fib) + packed + bytes(-len(packed) % _SECTOR)
    page = len(body) // _SECTOR
    look_page, paragraph_page = bytearray(_SECTOR), bytearray(_SECTOR)
    edges = sorted({0, len(text), *(at for start, end, _ in looks for at in (start, end))})
    look_page[-1] = len(edges) - 1
    struct.pack_into(f"<{len(edges)}I", look_page, 0, *(first + 2 * at for at in edges))
    for number, (name, at) in enumerate((name, edges.index(start)) for start, _, name in looks):
        place = 300 + 8 * number
        look_page[4 * len(edges) + at] = place // 2
        look_page[place : place + 4] = struct.pack("<BHB", 3, name, 1)
    paragraph_page[-1] = len(ends)
    struct.pack_into(f"<{len(ends) + 1}I", paragraph_page, 0, *(first + 2 * at for at in (0, *ends)))
    for number, (end, properties) in enumerate((styles or {}).items()):
        place = 300 + 16 * number
        paragraph_page[4 * (len(ends) + 1) + 13 * ends.index(end)] = place // 2
        paragraph_page[place : place + 2 + len(properties)] = bytes([0, -(-len(properties) // 2)]) + properties
    clx = b"\x02" + struct.pack("<IIIHIH", 16, 0, len(text), 0, first, 0)
    lists = b"".join(struct.pack("<III", first, first + len(packed), number) for number in (page, page + 1))
    for at, place, size in ((0x1A2, 0, len(clx)), (0xFA, len(clx), 12), (0x102, len(clx) + 12, 12)):
        body = body[:at] + struct.pack("<II", place, size) + body[at + 8 :]
    return make_compound({"WordDocument": body + look_page + paragraph_page, "0Table": clx + lists})


def _record(kind: int, body: bytes, *, is_container: bool = False, instance: int = 0) -> bytes:
    return struct.pack("<HHI", instance << 4 | (15 if is_container else 0), kind, len(body)) + body


def make_ppt(slides: Sequence[tuple[str, Sequence[str], str]], *, token: int = 0xE391C05F, hidden: int = -1) -> bytes:
    """A PPT file of slides: the title, which is in the outline, texts in boxes on the slide, and the speaker notes."""
    outline = notes_list = b""
    parts: list[bytes] = []
    for number, (title, texts, notes) in enumerate(slides):
        text = _record(3999, struct.pack("<I", 0)) + _record(4000, title.encode("utf-16-le"))
        outline += _record(1011, struct.pack("<IIIII", 2 + 2 * number, 0, 0, 256 + number, 0)) + text
        notes_list += _record(1011, struct.pack("<IIIII", 3 + 2 * number, 0, 0, 512 + number, 0))
        boxes = b"".join(_record(61453, _record(4008, each.encode("latin-1")), is_container=True) for each in texts)
        shown = _record(1017, bytes(10) + struct.pack("<HI", 4 if number == hidden else 0, 0))
        parts.append(_record(1006, shown + boxes, is_container=True))
        said = _record(1009, struct.pack("<II", 256 + number, 0)) + _record(4000, notes.encode("utf-16-le"))
        parts.append(_record(1008, said, is_container=True))
    lists = _record(4080, outline, is_container=True) + _record(4080, notes_list, is_container=True, instance=2)
    stream, places = b"", list[int]()
    for part in (_record(1000, lists, is_container=True), *parts):
        places.append(len(stream))
        stream += part
    directory = len(stream)
    stream += _record(6002, struct.pack(f"<I{len(places)}I", 1 | len(places) << 20, *places))
    edit = len(stream)
    stream += _record(4085, struct.pack("<IIIIIII", 0, 0, 0, directory, 1, 0, 0))
    user = _record(4086, struct.pack("<III", 20, token, edit))
    return make_compound({"PowerPoint Document": stream, "Current User": user})


def make_msg(
    properties: Mapping[str, str], *, attachments: Sequence[str] = (), streams: Mapping[str, bytes] | None = None
) -> bytes:
    """A MSG file with these properties, by their numbers, and further streams by the ends of their names."""
    prefix = "__substg1.0_"
    parts = {f"{prefix}{number}001F": text.encode("utf-16-le") for number, text in properties.items()}
    parts |= {f"{prefix}{name}": data for name, data in (streams or {}).items()}
    for number, name in enumerate(attachments):
        parts[f"__attach_version1.0_#{number:08}/{prefix}3707001F"] = name.encode("utf-16-le")
    sent = 133_500_000_000_000_000
    parts["__properties_version1.0"] = bytes(32) + struct.pack("<IIQ", 0x00390040, 0, sent)
    return make_compound(parts)


def xls_record(kind: int, body: bytes = b"") -> bytes:
    return struct.pack("<HH", kind, len(body)) + body


def make_xls(text: str, *, book: bytes = b"", sheet: bytes = b"") -> bytes:
    """An XLS file with this text in its first cell, and further records of the workbook and of its sheet."""

    def begin(kind: int) -> bytes:
        return xls_record(0x0809, struct.pack("<HHHHII", 0x0600, kind, 0x0DBB, 1996, 0, 6))

    label = struct.pack("<HHHHB", 0, 0, 0, len(text), 0) + text.encode("latin-1")
    start = len(begin(5)) + len(book) + len(xls_record(0x85, bytes(13))) + len(xls_record(0x0A))
    listed = xls_record(0x85, struct.pack("<IBBBB", start, 0, 0, 5, 0) + b"Sheet")
    stream = begin(5) + book + listed + xls_record(0x0A) + begin(16) + xls_record(0x0204, label) + sheet
    # Some readers take every shorter stream for one in the short sectors that these files lack.
    return make_compound({"Workbook": (stream + xls_record(0x0A)).ljust(4096, b"\0")})
