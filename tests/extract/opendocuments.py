"""Builds OpenDocument files from the XML of their bodies."""

from collections.abc import Mapping

from tests.samples import make_zip

_OASIS = "urn:oasis:names:tc:opendocument:xmlns"
_NAMES = {
    "office": "office",
    "text": "text",
    "table": "table",
    "draw": "drawing",
    "style": "style",
    "presentation": "presentation",
    "chart": "chart",
    "form": "form",
    "meta": "meta",
    "fo": "xsl-fo-compatible",
    "svg": "svg-compatible",
}
_DECLARED = " ".join(
    [
        *(f'xmlns:{prefix}="{_OASIS}:{name}:1.0"' for prefix, name in _NAMES.items()),
        'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:xlink="http://www.w3.org/1999/xlink"',
        'xmlns:math="http://www.w3.org/1998/Math/MathML"',
    ]
)
TYPE = "application/vnd.oasis.opendocument"


def part(root: str, inner: str) -> bytes:
    """An XML part whose root element has this name."""
    return f'<?xml version="1.0" encoding="UTF-8"?><{root} {_DECLARED}>{inner}</{root}>'.encode()


def make_open_document(
    kind: str,
    body: str,
    *,
    styles: str = "",
    masters: str = "",
    meta: str = "",
    parts: Mapping[str, bytes] | None = None,
) -> bytes:
    """An OpenDocument file of this kind, such as `text`, with further parts by their names."""
    tag = {"graphics": "drawing"}.get(kind, kind).partition("-")[0]
    content = f"<office:automatic-styles>{styles}</office:automatic-styles><office:body>"
    members = {
        "mimetype": f"{TYPE}.{kind}".encode(),
        "content.xml": part("office:document-content", f"{content}<office:{tag}>{body}</office:{tag}></office:body>"),
        "styles.xml": part("office:document-styles", f"<office:master-styles>{masters}</office:master-styles>"),
        "meta.xml": part("office:document-meta", f"<office:meta>{meta}</office:meta>"),
    }
    return make_zip({**members, **(parts or {})})


def make_flat(body: str) -> bytes:
    """A text as one XML file."""
    inner = f"<office:body><office:text>{body}</office:text></office:body>"
    return part(f'office:document office:mimetype="{TYPE}.text"', inner).replace(
        f'</office:document office:mimetype="{TYPE}.text">'.encode(), b"</office:document>"
    )


def cell(text: str, attributes: str = "", more: str = "") -> str:
    return f"<table:table-cell {attributes}>{f'<text:p>{text}</text:p>' if text else ''}{more}</table:table-cell>"


def table(*rows: str, attributes: str = "") -> str:
    """A table of rows, each the XML of its cells."""
    inner = "".join(f"<table:table-row>{row}</table:table-row>" for row in rows)
    return f"<table:table {attributes}>{inner}</table:table>"


def style(name: str, family: str, properties: str, attributes: str = "") -> str:
    return f'<style:style style:name="{name}" style:family="{family}" {attributes}>{properties}</style:style>'


def text_box(text: str, attributes: str = "") -> str:
    return f"<draw:frame {attributes}><draw:text-box><text:p>{text}</text:p></draw:text-box></draw:frame>"
