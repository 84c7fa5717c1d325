"""Builds small Office Open XML files from the XML of their parts, as other programs write them."""

import io
import zipfile
from collections.abc import Mapping
from html import escape

_SCHEMAS = "http://schemas.openxmlformats.org/"
RELATIONS = f"{_SCHEMAS}officeDocument/2006/relationships"
NAMESPACES = " ".join(
    f'xmlns:{prefix}="{uri}"'
    for prefix, uri in {
        "w": f"{_SCHEMAS}wordprocessingml/2006/main",
        "p": f"{_SCHEMAS}presentationml/2006/main",
        "a": f"{_SCHEMAS}drawingml/2006/main",
        "c": f"{_SCHEMAS}drawingml/2006/chart",
        "dgm": f"{_SCHEMAS}drawingml/2006/diagram",
        "wp": f"{_SCHEMAS}drawingml/2006/wordprocessingDrawing",
        "m": f"{_SCHEMAS}officeDocument/2006/math",
        "mc": f"{_SCHEMAS}markup-compatibility/2006",
        "r": RELATIONS,
        "v": "urn:schemas-microsoft-com:vml",
        "o": "urn:schemas-microsoft-com:office:office",
        "wps": "http://schemas.microsoft.com/office/word/2010/wordprocessingShape",
        "a14": "http://schemas.microsoft.com/office/drawing/2010/main",
    }.items()
)
_MAIN = {
    "word": ("document.xml", "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"),
    "ppt": ("presentation.xml", "application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml"),
    "xl": ("workbook.xml", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"),
}
STYLES = "".join(
    f'<w:style w:type="paragraph" w:styleId="H{level}"><w:name w:val="heading {level}"/></w:style>' for level in (1, 2)
)


def run(text: str, properties: str = "") -> str:
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{escape(text)}</w:t></w:r>'


def paragraph(text: str = "", properties: str = "", inside: str = "") -> str:
    return f"<w:p><w:pPr>{properties}</w:pPr>{run(text) if text else ''}{inside}</w:p>"


def part(tag: str, inside: str) -> str:
    return f'<?xml version="1.0" encoding="UTF-8"?><{tag} {NAMESPACES}>{inside}</{tag}>'


def relation(identity: str, kind: str, target: str) -> str:
    return f'<Relationship Id="{identity}" Type="{RELATIONS}/{kind}" Target="{target}"/>'


def relations(*each: str) -> str:
    return f'<Relationships xmlns="{_SCHEMAS}package/2006/relationships">{"".join(each)}</Relationships>'


def office_parts(folder: str, main: str, parts: Mapping[str, str | bytes], related: str = "") -> dict[str, bytes]:
    """The parts of an Office file: its main part and others in its folder, with the main part's relations."""
    name, content_type = _MAIN[folder]
    whole = {
        "[Content_Types].xml": f'<Types xmlns="{_SCHEMAS}package/2006/content-types"><Default Extension="xml"'
        f' ContentType="application/xml"/><Override PartName="/{folder}/{name}" ContentType="{content_type}"/></Types>',
        "_rels/.rels": relations(relation("rId1", "officeDocument", f"{folder}/{name}")),
        f"{folder}/{name}": main,
        f"{folder}/_rels/{name}.rels": relations(related),
        **{f"{folder}/{each}": content for each, content in parts.items()},
    }
    return {each: content.encode() if isinstance(content, str) else content for each, content in whole.items()}


def zipped(parts: Mapping[str, bytes]) -> bytes:
    """An archive that keeps the names as they are given, also those with backslashes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in parts.items():
            member = zipfile.ZipInfo("x")
            member.filename, member.compress_type = name, zipfile.ZIP_DEFLATED
            archive.writestr(member, content)
    return buffer.getvalue()


def word_parts(body: str, parts: Mapping[str, str | bytes] | None = None, related: str = "") -> dict[str, bytes]:
    main = part("w:document", f"<w:body>{body}</w:body>")
    styles = {"styles.xml": part("w:styles", STYLES)}
    return office_parts("word", main, styles | dict(parts or {}), relation("rIdS", "styles", "styles.xml") + related)


def word(body: str, parts: Mapping[str, str | bytes] | None = None, related: str = "") -> bytes:
    return zipped(word_parts(body, parts, related))


def shape(text: str, place: str = "", kind: str = "", properties: str = "") -> str:
    """A shape on a slide: with a text, and perhaps a place, a kind of placeholder and properties of its run."""
    holder = f'<p:ph type="{kind}"/>' if kind else ""
    return (
        f'<p:sp><p:nvSpPr><p:cNvPr id="1" name="S"/><p:cNvSpPr/>'
        f"<p:nvPr>{holder}</p:nvPr></p:nvSpPr><p:spPr>{place}</p:spPr>"
        f"<p:txBody><a:bodyPr/><a:p><a:r><a:rPr>{properties}</a:rPr>"
        f"<a:t>{escape(text)}</a:t></a:r></a:p></p:txBody></p:sp>"
    )


def place(left: int, top: int, wide: int = 100, high: int = 100) -> str:
    return f'<a:xfrm><a:off x="{left}" y="{top}"/><a:ext cx="{wide}" cy="{high}"/></a:xfrm>'


def slide(shapes: str, attributes: str = "") -> str:
    xml = part("p:sld", f"<p:cSld><p:spTree>{shapes}</p:spTree></p:cSld>")
    return xml.replace("<p:sld ", f"<p:sld {attributes} ", 1)


def deck_parts(
    slides: list[str], parts: Mapping[str, str | bytes] | None = None, related: str = ""
) -> dict[str, bytes]:
    """A deck of 1000 by 1000 units; a slide's own relations are given as a part."""
    ids = "".join(f'<p:sldId id="{256 + number}" r:id="rIdL{number}"/>' for number in range(len(slides)))
    main = part("p:presentation", f'<p:sldIdLst>{ids}</p:sldIdLst><p:sldSz cx="1000" cy="1000"/>')
    numbered = {f"slides/slide{number}.xml": xml for number, xml in enumerate(slides)}
    own = "".join(relation(f"rIdL{number}", "slide", name) for number, name in enumerate(numbered))
    return office_parts("ppt", main, {**numbered, **(parts or {})}, own + related)


def deck(slides: list[str], parts: Mapping[str, str | bytes] | None = None, related: str = "") -> bytes:
    return zipped(deck_parts(slides, parts, related))


def _points(*texts: str) -> str:
    return "".join(f'<c:pt idx="{number}"><c:v>{text}</c:v></c:pt>' for number, text in enumerate(texts))


CHART = part(
    "c:chartSpace",
    "<c:chart><c:title><c:tx><c:rich><a:p><a:r><a:t>Turnover by branch</a:t></a:r></a:p></c:rich></c:tx></c:title>"
    f"<c:plotArea><c:barChart><c:ser><c:tx><c:strRef><c:strCache>{_points('Share')}</c:strCache></c:strRef></c:tx>"
    f"<c:cat><c:strRef><c:strCache>{_points('Ulm', 'Celle')}</c:strCache></c:strRef></c:cat>"
    f"<c:val><c:numRef><c:numCache><c:formatCode>0%</c:formatCode>{_points('0.25', '0.5')}</c:numCache></c:numRef>"
    "</c:val></c:ser></c:barChart></c:plotArea></c:chart>",
)


def _point(identity: int, kind: str, text: str) -> str:
    shown = f"<dgm:t><a:bodyPr/><a:p><a:r><a:t>{text}</a:t></a:r></a:p></dgm:t>"
    return f'<dgm:pt modelId="{identity}" type="{kind}">{shown}</dgm:pt>'


DIAGRAM = part(
    "dgm:dataModel",
    f"<dgm:ptLst>{_point(1, 'node', 'Second step')}{_point(2, 'node', 'First step')}{_point(3, 'pres', 'Layout')}"
    f"{_point(0, 'doc', '')}</dgm:ptLst>"
    '<dgm:cxnLst><dgm:cxn srcId="0" destId="1" srcOrd="1"/><dgm:cxn srcId="0" destId="2" srcOrd="0"/></dgm:cxnLst>',
)
