"""Office files with random damage end with text or with a reason, and never with another exception."""

import io
import random
import zipfile

import pytest

from svc_daemon.core.text.media_types import detect
from svc_daemon.extract.child_limits import CageLimits
from svc_daemon.extract.documents import ExtractionFailed
from svc_daemon.extract.formats import Given, find_reader
from tests import samples
from tests.extract.office_files import CHART, DIAGRAM, relation, relations, zipped
from tests.extract.readings import exact

_PIECES = (
    b"-1",
    b"999999999999",
    b"",
    b"&",
    b"<",
    b'"',
    b"\0",
    b"\xff",
    b"1e999",
    b"</w:tbl>",
    b"<w:p>",
    b"</v>",
    b";;",
)
_FILES = {
    "a.docx": samples.make_docx({"One": "Text.", "Two": "Text."}, table=[["a", "b"], ["c", "d"]], title="Doc"),
    "a.pptx": samples.make_pptx([("Start", "Hello"), ("", ""), ("End", "Bye")]),
    "a.xlsx": samples.make_xlsx({"Ships": [["name", "draught"], ["Anna", 2.5], ["Bob", 3.0]]}),
}


def damaged(content: bytes, chance: random.Random) -> bytes:
    out = bytearray(content)
    for _ in range(chance.randint(1, 5)):
        at = chance.randrange(len(out) + 1)
        other = chance.randrange(len(out) + 1)
        action = chance.randrange(3)
        if action == 0:
            del out[at : at + chance.randint(1, 60)]
        else:
            out[at:at] = chance.choice(_PIECES) if action == 1 else out[other : other + chance.randint(1, 200)]
    return bytes(out)


@pytest.mark.parametrize("name", _FILES)
def test_damaged_file_ends_with_text_or_a_reason(name: str) -> None:
    chance = random.Random(30)
    with zipfile.ZipFile(io.BytesIO(_FILES[name])) as archive:
        parts = {each: archive.read(each) for each in archive.namelist()}
    if name == "a.xlsx":
        own = relations(relation("d", "drawing", "../drawings/d.xml"), relation("c", "comments", "../c.xml"))
        parts |= {"xl/worksheets/_rels/sheet1.xml.rels": own.encode(), "xl/drawings/d.xml": CHART.encode()}
        parts["xl/c.xml"] = DIAGRAM.encode()
    kinds = {"text": 0, "reason": 0}
    for number in range(48):
        part = chance.choice([each for each in parts if each.endswith((".xml", ".rels"))])
        data = zipped({**parts, part: damaged(parts[part], chance)}) if number % 6 else damaged(_FILES[name], chance)
        content_type = detect(data, name)
        try:
            exact(
                find_reader(content_type)(
                    Given(data=data, filename=name, content_type=content_type, limits=CageLimits())
                )
            )
            kinds["text"] += 1
        except ExtractionFailed:
            kinds["reason"] += 1
    assert kinds["text"] > kinds["reason"] > 0
