"""The text of a Word paragraph as it is shown, and what hangs on it: boxes, notes, comments, pictures.

Letters of the fonts Symbol and Wingdings are read as the characters that they look like.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from svc_daemon.extract.builders import FlowDocument
from svc_daemon.extract.formats.open_xml.drawings import (
    description,
    graphic_reference,
    is_hidden,
    paragraphs,
    struck_text,
)
from svc_daemon.extract.formats.open_xml.equations import equation_text
from svc_daemon.extract.formats.open_xml.numbering import number_of
from svc_daemon.extract.formats.open_xml.packages import OfficePackage, alternative, is_on, local_name, qname
from svc_daemon.extract.formats.open_xml.word.styles import StyleLook, WordStyles, has_backdrop, has_background
from svc_daemon.extract.formats.superscripts import raised, write_exponents

_GREEK = "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ"
_SMALL_GREEK = "αβχδεφγηιϕκλμνοπθρστυϖωξψζ"
_SYMBOL = {
    **{ord("A") + place: letter for place, letter in enumerate(_GREEK)},
    **{ord("a") + place: letter for place, letter in enumerate(_SMALL_GREEK)},
    **dict(zip(b"\"$'*-@\\^`~", "∀∃∋∗−≅∴⊥‾∼", strict=True)),
    **dict(zip(range(0xA0, 0xC0), "€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵", strict=True)),
    **dict(zip(range(0xC0, 0xE0), "ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓", strict=True)),
    **dict(zip((0xE0, 0xE1, 0xE5, 0xF1, 0xF2), "◊〈∑〉∫", strict=True)),
}
_WINGDINGS = {
    **dict(zip(b'"(*6JKLlmnoqrv', "✂☎✉⌛☺😐☹●❍■□❑❒❖", strict=True)),
    **dict(zip(range(0x81, 0x8B), "①②③④⑤⑥⑦⑧⑨⑩", strict=True)),
    **dict(zip((0x9F, 0xA7, 0xA8, 0xD8, 0xDF, 0xE0, 0xE1, 0xE2, 0xE8, 0xF0), "•▪□➢←→↑↓➔⇨", strict=True)),
    **dict(zip(range(0xFB, 0xFF), "✗✓☒☑", strict=True)),
}
_WINGDINGS_2 = dict(zip((0x4F, 0x50, 0x51, 0x52, 0x53, 0x54, 0xA3), "✗✓☒☑☒☒□", strict=True))
_SYMBOL_FONTS = {"symbol": _SYMBOL, "wingdings": _WINGDINGS, "wingdings 2": _WINGDINGS_2}
#: Fonts of symbols have their letters in this private area, too.
_PRIVATE = 0xF000


def is_symbol_font(font: str | None) -> bool:
    return (font or "").lower() in _SYMBOL_FONTS


def symbols(text: str, font: str | None) -> str:
    """Return text in one of these fonts as usual characters; text in other fonts stays as it is."""
    letters = _SYMBOL_FONTS.get((font or "").lower())
    if letters is None:
        return text
    return "".join(letters.get(ord(each) - _PRIVATE if ord(each) >= _PRIVATE else ord(each), each) for each in text)


_VALUE, _IDENTITY = qname("w:val"), qname("w:id")
_RUN_PROPERTIES, _FONTS, _KIND = qname("w:rPr"), qname("w:rFonts"), qname("w:fldCharType")
_RUN, _TEXT = qname("w:r"), qname("w:t")
_BREAKS = {"br": "\n", "cr": "\n", "tab": "\t", "ptab": "\t", "noBreakHyphen": "-"}
#: Deleted and moved text, properties, and instructions that aren't shown.
SILENT = frozenset(
    qname(f"w:{name}")
    for name in (
        "del",
        "moveFrom",
        "pPr",
        "rPr",
        "sdtPr",
        "sdtEndPr",
        "delText",
        "delInstrText",
        "tblPr",
        "tcPr",
        "trPr",
    )
)
#: Codes of fields whose text is a part of their instruction.
_BUTTONS = ("MACROBUTTON", "GOTOBUTTON")


class Attached(NamedTuple):
    """Something that hangs on a paragraph and follows it."""

    #: `box`, `text`, `alt_text`, `chart`, `diagram`, `footnote`, `endnote` or `comment`.
    kind: str
    #: An element, a text, a part's name or an id.
    value: Any


class _Field:
    """A field that has begun: its instruction, and whether its result has begun."""

    def __init__(self, begin: Any) -> None:
        self.begin = begin
        self.instruction = ""
        self.is_shown = False


class RunReader:
    """Reads the runs of paragraphs, one after another."""

    def __init__(self, flow: FlowDocument, package: OfficePackage, styles: WordStyles) -> None:
        self._flow, self._package, self._styles = flow, package, styles
        #: The part that the paragraphs are from.
        self.part = ""
        #: Whether text is on a colour, so that white text is seen.
        self.on_colour = False
        self.attached: list[Attached] = []
        self._look = StyleLook()
        self._pieces: list[str] = []
        self._readings: list[str] = []
        self._fields: list[_Field] = []
        self._has_whole_fields = True
        self._handlers: dict[str, Callable[[Any], None]] = {
            qname("mc:AlternateContent"): self.take_alternative,
            qname("w:ruby"): self.take_ruby,
            qname("m:oMath"): self.take_equation,
            qname("m:oMathPara"): self.take_equation,
            qname("w:fldChar"): self.take_field_mark,
            qname("w:instrText"): self.take_instruction,
            qname("w:sym"): lambda each: self._show(_symbol(each)),
            **{qname(f"w:{name}"): self.show_break for name in _BREAKS},
            **{qname(f"w:{name}"): self.take_drawing for name in ("drawing", "pict", "object")},
            **{qname(f"w:{name}Reference"): self.take_reference for name in ("footnote", "endnote", "comment")},
        }

    def begin_story(self, part: str, root: Any) -> None:
        """Begin with the paragraphs of another part."""
        self.part, self._fields = part, []
        self.on_colour = has_backdrop(root)
        marks = [mark.get(_KIND) for mark in root.iter(qname("w:fldChar"))]
        # Where a field has no end, all that follows would be its instruction.
        self._has_whole_fields = marks.count("begin") == marks.count("end")

    def read(self, paragraph: Any, look: StyleLook, marks: Mapping[str, Any]) -> str:
        """Return the text of a paragraph. What hangs on it is added to `attached`."""
        self._pieces, self._readings, self._look = [], [], look
        was_on_colour = self.on_colour
        self.on_colour = was_on_colour or has_background(marks)
        self._take(paragraph)
        self.on_colour = was_on_colour
        text = write_exponents("".join(self._pieces))
        return f"{text} ({''.join(self._readings)})" if self._readings else text

    def _take(self, element: Any) -> None:
        for child in element:
            tag = child.tag
            if tag == _TEXT:
                self._show(child.text or "")
            elif tag == _RUN:
                self.take_run(child)
            elif tag not in SILENT:
                handler = self._handlers.get(tag)
                if handler:
                    handler(child)
                else:
                    self._take(child)

    def take_run(self, run: Any) -> None:
        properties = run.find(_RUN_PROPERTIES)
        reason = self._styles.why_unseen(properties, self._look, on_colour=self.on_colour)
        fonts = None if properties is None else properties.find(_FONTS)
        font = None if fonts is None else fonts.get(qname("w:ascii")) or fonts.get(qname("w:hAnsi"))
        is_raised = self._styles.is_raised(properties, self._look)
        if reason is None and not is_raised and not is_symbol_font(font):
            self._take(run)
            return
        pieces, self._pieces = self._pieces, []
        self._take(run)
        text, self._pieces = "".join(self._pieces), pieces
        if reason is None:
            self._pieces.append(raised(symbols(text, font)) if is_raised else symbols(text, font))
        else:
            self._flow.hide(text, reason)

    def _show(self, text: str) -> None:
        # An instruction may have results of other fields in it, which aren't shown.
        if not self._has_whole_fields or all(field.is_shown for field in self._fields):
            self._pieces.append(text)

    def show_break(self, element: Any) -> None:
        self._show(_BREAKS[local_name(element)])

    def take_alternative(self, element: Any) -> None:
        """Take the alternative that is shown; the one for old programs if the new one has no text here."""
        before = len(self._pieces) + len(self.attached)
        self._take(alternative(element))
        if len(self._pieces) + len(self.attached) == before:
            for fallback in element.iterchildren(qname("mc:Fallback")):
                self._take(fallback)

    def take_ruby(self, element: Any) -> None:
        """Show a word, and keep its reading for the end of the paragraph, so that it doesn't cut the text."""
        for child in element.iterchildren(qname("w:rt")):
            pieces, self._pieces = self._pieces, []
            self._take(child)
            self._readings += self._pieces
            self._pieces = pieces
        for child in element.iterchildren(qname("w:rubyBase")):
            self._take(child)

    def take_equation(self, element: Any) -> None:
        self._show(equation_text(element).strip())
        self._flow.note_part("equations")

    def take_field_mark(self, mark: Any) -> None:
        kind = mark.get(_KIND)
        if kind == "begin":
            self._fields.append(_Field(mark))
        elif self._fields and kind == "separate":
            self._fields[-1].is_shown = True
        elif self._fields and kind == "end":
            field = self._fields.pop()
            if not field.is_shown:
                self._show(_shown_without_result(field))

    def take_instruction(self, element: Any) -> None:
        if self._fields:
            self._fields[-1].instruction += element.text or ""

    def take_reference(self, mark: Any) -> None:
        kind = local_name(mark).removesuffix("Reference")
        self.attached.append(Attached(kind, mark.get(_IDENTITY)))

    def take_drawing(self, element: Any) -> None:
        """Keep the texts, charts and descriptions of a drawing or picture for after the paragraph."""
        for child in element:
            name = local_name(child)
            if name in {"docPr", "cNvPr"} and is_hidden(child):
                words = " ".join(text.text or "" for text in element.iter(_TEXT, qname("a:t")))
                self._flow.hide(words, "hidden shape")
                return
            if name in {"docPr", "cNvPr"}:
                self._attach_once("alt_text", description(child))
            elif name == "AlternateContent":
                self.take_drawing(alternative(child))
            elif name == "txbxContent":
                self.attached.append(Attached("box", child))
            elif name == "txBody":
                self._flow.hide(struck_text(child), "struck out")
                self.attached += [Attached("text", text) for text in paragraphs(child)]
            elif reference := graphic_reference(self._package, self.part, child):
                self.attached.append(Attached(*reference))
            else:
                self.take_old_shape(child, name)
                self.take_drawing(child)

    def take_old_shape(self, element: Any, name: str) -> None:
        """Keep what a shape of the older kind (VML) says beside its text."""
        if name == "textpath":
            self._attach_once("text", element.get("string") or "")
        elif name in {"shape", "rect", "roundrect", "oval", "line", "group"}:
            self._attach_once("alt_text", element.get("alt") or "")
        elif name == "OLEObject":
            kind = element.get("ProgID") or "of an unknown kind"
            self._flow.warn(f"An embedded object ({kind}) was not read; only what the page shows of it may be.")

    def _attach_once(self, kind: str, text: str) -> None:
        attached = Attached(kind, text)
        if text.strip() and attached not in self.attached:
            self.attached.append(attached)


def _symbol(element: Any) -> str:
    font, code = element.get(qname("w:font")), element.get(qname("w:char")) or ""
    try:
        return symbols(chr(int(code, 16)), font)
    except (ValueError, OverflowError):
        return ""


def _shown_without_result(field: _Field) -> str:
    """Return what a field without a result shows: the state of a box, the chosen entry, the words of a button."""
    box, choices = (next(field.begin.iter(qname(f"w:{name}")), None) for name in ("checkBox", "ddList"))
    if box is not None:
        states = [box.find(qname(f"w:{name}")) for name in ("checked", "default")]
        state = next((each for each in states if each is not None), None)
        return "☒" if is_on(state, _VALUE) else "☐"
    if choices is not None:
        entries = [entry.get(_VALUE) or "" for entry in choices.iter(qname("w:listEntry"))]
        chosen = [choices.find(qname(f"w:{name}")) for name in ("result", "default")]
        number = next((number_of(each.get(_VALUE), 0) for each in chosen if each is not None), 0)
        return entries[number] if 0 <= number < len(entries) else ""
    words = field.instruction.split(maxsplit=2)
    return words[2] if len(words) == 3 and words[0].upper() in _BUTTONS else ""
