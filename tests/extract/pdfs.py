"""Builds PDFs of one page from content streams, fonts and annotations."""

from collections.abc import Mapping, Sequence

_HELVETICA = "<</Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding>>"
#: An inline picture that covers the middle of the page.
PICTURE = "q 468 0 0 648 72 72 cm BI /W 1 /H 1 /CS /G /BPC 8 /F /AHx ID ff> EI Q\n"


def lines(*texts: str | bytes, x: float = 72, y: float = 720, size: float = 11, before: str = "") -> str:
    """Operators that show lines of text from this place down."""
    packed = (text if isinstance(text, bytes) else text.encode("cp1252") for text in texts)
    shown = " T* ".join(f"<{each.hex()}> Tj" for each in packed)
    return f"BT {before} /F {size} Tf 16 TL {x} {y} Td {shown} ET\n"


def make_page(
    content: str,
    *,
    page: str = "",
    letters: Mapping[int, str] | None = None,
    annotations: Sequence[str] = (),
    catalog: str = "",
    properties: str = "",
    others: Sequence[str] = (),
) -> bytes:
    """A PDF of one page. `letters` are what the codes of its font mean, and `others` are objects from number 10 on."""
    kids = " ".join(f"{10 + len(others) + at} 0 R" for at in range(len(annotations)))
    fields = f"/AcroForm <</Fields [{kids}] /DA (/Helv 10 Tf 0 g) /NeedAppearances true>>" if kids else ""
    resources = f"<</Font <</F 5 0 R>> /Properties <<{properties}>>>>"
    objects = {
        1: f"<</Type /Catalog /Pages 2 0 R {fields} {catalog}>>",
        2: "<</Type /Pages /Kids [3 0 R] /Count 1>>",
        3: f"<</Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] {page} /Annots [{kids}] /Contents 4 0 R"
        f" /Resources {resources}>>",
        4: f"<</Length {len(content)}>>\nstream\n{content}\nendstream",
        5: _HELVETICA if letters is None else _mapped_font(),
        6: _unicode_map(letters or {}),
        **dict(enumerate((*others, *annotations), 10)),
    }
    body = "".join(f"{number} 0 obj\n{each}\nendobj\n" for number, each in objects.items())
    return f"%PDF-1.7\n{body}trailer <</Root 1 0 R>>\n%%EOF\n".encode("latin-1")


def _mapped_font() -> str:
    widths = " ".join(["500"] * 256)
    return (
        "<</Type /Font /Subtype /Type1 /BaseFont /ABCDEF+Made /FirstChar 0 /LastChar 255"
        f" /Widths [{widths}] /ToUnicode 6 0 R /Encoding /WinAnsiEncoding>>"
    )


def _unicode_map(letters: Mapping[int, str]) -> str:
    rows = "\n".join(f"<{code:02X}> <{text.encode('utf-16-be').hex()}>" for code, text in letters.items())
    cmap = (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /T def /CMapType 2 def\n"
        f"1 begincodespacerange <00> <FF> endcodespacerange\n{len(letters)} beginbfchar\n{rows}\n"
        "endbfchar\nendcmap end end"
    )
    return f"<</Length {len(cmap)}>>\nstream\n{cmap}\nendstream"


def field(kind: str, entries: str, y: int = 716, height: int = 18) -> str:
    """A field of a form, at the right of the labels."""
    box = f"/Rect [150 {y} 400 {y + height}]"
    return f"<</Type /Annot /Subtype /Widget /FT /{kind} /T (f{y}) {box} /F 4 /DA (/Helv 10 Tf 0 g) {entries}>>"


def note(kind: str, contents: str, entries: str = "") -> str:
    return f"<</Type /Annot /Subtype /{kind} /Rect [100 100 300 120] /Contents ({contents}) {entries}>>"
