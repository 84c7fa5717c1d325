"""What a PDF's page says beside its text: values of forms, typed text, notes, words for pictures, attached files."""

import ctypes
import re
from dataclasses import dataclass, field
from typing import Any

import pypdfium2
from pypdfium2 import raw

from svc_daemon.extract.builders import one_line

#: Pages have at most so many annotations that are read.
ANNOTATIONS = 2000
_HIDDEN_FLAGS = 2 | 32
_PASSWORD_FLAG = 1 << 13
#: Annotations that show text of their own. Others mark text, or open on a click.
_DRAWN = frozenset({raw.FPDF_ANNOT_FREETEXT, raw.FPDF_ANNOT_STAMP, raw.FPDF_ANNOT_WATERMARK, raw.FPDF_ANNOT_REDACT})
#: Elements whose alternative text is for what they show already.
_SHOWN = frozenset({"Link", "Span", "Annot", "Form"})
#: The name of a picture's file, which some programs write instead of words.
_FILE = re.compile(r"(?:[A-Za-z]:\\|\\\\|/|https?:|file:).*|.*\.(?:jpe?g|png|gif|tiff?|bmp|[ew]mf|svg)", re.IGNORECASE)
#: So many elements of a page's structure are looked at.
_ELEMENTS = 20_000
#: Fields that show a mark instead of words.
_MARKS = frozenset({raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON})
_TYPED = frozenset({raw.FPDF_FORMFIELD_TEXTFIELD, raw.FPDF_FORMFIELD_COMBOBOX})


@dataclass
class Drawn:
    """An annotation that shows text on the page, such as a field of a form."""

    #: What was typed; empty if only the page shows it.
    value: str
    #: Left, bottom, right, top.
    box: tuple[float, float, float, float]


@dataclass
class Annotations:
    """What the annotations of a page say."""

    drawn: list[Drawn] = field(default_factory=list)
    #: The author, or an empty string, and the text of each note.
    notes: list[tuple[str, str]] = field(default_factory=list)
    attachments: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    #: The words that describe pictures.
    descriptions: list[str] = field(default_factory=list)
    #: Number of the form's fields that were filled in.
    fields: int = 0


def _string(call: Any, *arguments: object) -> str:
    """Return the UTF-16 text that a function of PDFium writes into a buffer."""
    size = call(*arguments, None, 0)
    if not 2 < size <= 2_000_000:
        return ""
    buffer = (raw.FPDF_WCHAR * (size // 2 + 1))()
    call(*arguments, buffer, size)
    return (
        bytes(buffer)[: size - 2].decode("utf-16-le", "replace").replace("\r\n", "\n").replace("\r", "\n").strip("\0")
    )


def read_annotations(page: Any, form: object) -> Annotations:
    """Return what annotations say, and remove those from the page that draw no words."""
    found = Annotations()
    for index in reversed(range(min(raw.FPDFPage_GetAnnotCount(page), ANNOTATIONS))):
        if annotation := raw.FPDFPage_GetAnnot(page, index):
            draws = _read(found, annotation, form)
            raw.FPDFPage_CloseAnnot(annotation)
            if not draws:
                raw.FPDFPage_RemoveAnnot(page, index)
    for kind in (found.drawn, found.notes, found.attachments):
        kind.reverse()
    return found


def descriptions(page: Any) -> list[str]:
    """Return the words that describe the pictures of a page, if the PDF has its structure."""
    tree = raw.FPDF_StructTree_GetForPage(page)
    if not tree:
        return []
    words: dict[str, None] = {}
    count = raw.FPDF_StructTree_CountChildren(tree)
    waiting = [raw.FPDF_StructTree_GetChildAtIndex(tree, at) for at in reversed(range(min(count, _ELEMENTS)))]
    for _ in range(_ELEMENTS):
        if not waiting:
            break
        if not (element := waiting.pop()):
            continue
        text = one_line(_string(raw.FPDF_StructElement_GetAltText, element))
        if text and not _FILE.fullmatch(text) and _string(raw.FPDF_StructElement_GetType, element) not in _SHOWN:
            words[text] = None
        children = range(min(raw.FPDF_StructElement_CountChildren(element), _ELEMENTS))
        waiting += [raw.FPDF_StructElement_GetChildAtIndex(element, at) for at in reversed(children)]
    raw.FPDF_StructTree_Close(tree)
    return [*words]


def _read(found: Annotations, annotation: object, form: object) -> bool:
    """Note what an annotation says. Returns whether it also draws on the page."""
    kind = raw.FPDFAnnot_GetSubtype(annotation)
    is_hidden = bool(raw.FPDFAnnot_GetFlags(annotation) & _HIDDEN_FLAGS)
    if kind == raw.FPDF_ANNOT_WIDGET:
        return _read_field(found, annotation, form, is_hidden=is_hidden)
    contents = _string(raw.FPDFAnnot_GetStringValue, annotation, b"Contents").strip()
    if kind == raw.FPDF_ANNOT_FILEATTACHMENT:
        attached = raw.FPDFAnnot_GetFileAttachment(annotation)
        found.attachments.append(_string(raw.FPDFAttachment_GetName, attached) if attached else "")
    if contents and is_hidden:
        found.hidden.append(contents)
    elif contents and kind not in (raw.FPDF_ANNOT_LINK, raw.FPDF_ANNOT_POPUP, raw.FPDF_ANNOT_FREETEXT):
        author = one_line(_string(raw.FPDFAnnot_GetStringValue, annotation, b"T"))
        found.notes.append((author, contents))
    if is_hidden or kind not in _DRAWN:
        return False
    return _add_drawn(found, annotation, contents if kind == raw.FPDF_ANNOT_FREETEXT else "")


def _read_field(found: Annotations, annotation: object, form: object, *, is_hidden: bool) -> bool:
    kind = raw.FPDFAnnot_GetFormFieldType(form, annotation) if form else -1
    flags = raw.FPDFAnnot_GetFormFieldFlags(form, annotation) if form else 0
    value = ""
    if kind in _TYPED and not flags & _PASSWORD_FLAG:
        value = _string(raw.FPDFAnnot_GetFormFieldValue, form, annotation).strip()
    if kind == raw.FPDF_FORMFIELD_COMBOBOX:
        # The value may be a code, and its label is shown.
        options = range(min(raw.FPDFAnnot_GetOptionCount(form, annotation), ANNOTATIONS))
        chosen = [at for at in options if raw.FPDFAnnot_IsOptionSelected(form, annotation, at)]
        value = ", ".join(_string(raw.FPDFAnnot_GetOptionLabel, form, annotation, at) for at in chosen) or value
    if is_hidden and value:
        found.hidden.append(value)
    if is_hidden or kind in _MARKS:
        return False
    found.fields += bool(value)
    return _add_drawn(found, annotation, value)


def _add_drawn(found: Annotations, annotation: object, value: str) -> bool:
    box = raw.FS_RECTF()
    if not raw.FPDFAnnot_GetRect(annotation, ctypes.byref(box)):
        return False
    (left, right), (bottom, top) = sorted((box.left, box.right)), sorted((box.bottom, box.top))
    found.drawn.append(Drawn(value, (left, bottom, right, top)))
    return True


def attached_files(pdf: pypdfium2.PdfDocument) -> list[str]:
    """Return the names of files that are attached to a document."""
    count = min(raw.FPDFDoc_GetAttachmentCount(pdf), ANNOTATIONS)
    handles = (raw.FPDFDoc_GetAttachment(pdf, index) for index in range(count))
    return [_string(raw.FPDFAttachment_GetName, handle) for handle in handles if handle]
