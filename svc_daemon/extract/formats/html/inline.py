"""The text of a block while it is collected: what inline elements join, and what is apart within the block."""

from collections import Counter
from collections.abc import Callable, Mapping

from selectolax.lexbor import LexborNode

from svc_daemon.extract.builders import one_line
from svc_daemon.extract.formats import superscripts

#: Stands for a line break until the block's white space is collapsed.
BREAK = "\x01"
#: A block of which links are more than this share is one of links.
_LINKED_SHARE = 0.8
#: Inputs whose value is shown.
_SHOWN_INPUTS = frozenset(
    {
        *("", "text", "search", "email", "url", "tel", "number", "date", "month", "week", "time", "datetime-local"),
        *("datetime", "submit", "reset", "button"),
    }
)
_TICKS = frozenset({"checkbox", "radio"})


class InlineText:
    """Collects the text of a block, and what must not stand within its words."""

    def __init__(self) -> None:
        #: How many of each kind of part the text has.
        self.parts: Counter[str] = Counter()
        #: Whether there is a field for a password.
        self.asks_password = False
        self.pieces: list[str] = []
        #: How many links the block has that was taken last, if it had hardly any other text.
        self.links = 0
        self._links = self._linked = self._link_start = 0
        #: The text before a label or reading that has begun.
        self._before: list[list[str]] = []
        #: Readings above words, and where the last of these words ends.
        self.readings: list[str] = []
        self._reading_end = self._link_end = -1
        self._joins_reading = False
        #: Elements that show once more what was read.
        self.repeated: set[int] = set()
        self._drawings = self._fractions = self._powers = 0
        #: How many headings are open, and the labels of their buttons and pictures.
        self.headings = 0
        self.labels: list[str] = []
        #: The options of lists that aren't chosen.
        self.options: list[str] = []

    def take(self, *, is_code: bool) -> str:
        """Return the block's text, and begin the next block."""
        text = superscripts.write_exponents("".join(self.pieces))
        self.pieces, self._link_end, self._reading_end = [], -1, -1
        if is_code:
            text = text.replace(BREAK, "\n").strip("\n")
        elif BREAK in text:
            text = "\n".join(map(one_line, text.split(BREAK))).strip("\n")
        else:
            text = one_line(text)
        if self.readings:
            # Within the text, they would cut the words.
            readings, self.readings = " ".join(self.readings), []
            if self.headings:
                self.labels.append(readings)
            else:
                text = f"{text} ({readings})"
        self.links = self._links if self._linked > len(text) * _LINKED_SHARE else 0
        self._links = self._linked = self._link_start = 0
        return text

    def enter(self, node: LexborNode, tag: str) -> None:
        """Begin an inline element."""
        if self._powers and _is_power(node):
            # Equations don't show the white space between their elements.
            while self.pieces and self.pieces[-1].isspace():
                self.pieces.pop()
            self.pieces.append(superscripts.BEGIN)
        if handler := _BEGINNINGS.get(tag):
            handler(self, node)
        elif "-" in tag[1:]:
            # Elements of the page's own are mostly boxes.
            self.pieces.append(" ")

    def leave(self, node: LexborNode, tag: str) -> None:
        """End an inline element."""
        if handler := _ENDS.get(tag):
            handler(self, node)
        elif "-" in tag[1:]:
            self.pieces.append(" ")
        if self._powers and _is_power(node):
            self.pieces.append(superscripts.END)
        if self._fractions and (parent := node.parent) is not None and parent.tag == "mfrac":
            following = node.next
            while following is not None and not following.is_element_node:
                following = following.next
            self.pieces.append("/" if following is not None else "")

    def stand_apart(self, _: LexborNode) -> None:
        self.pieces.append(" ")

    def add_label(self, label: str | None) -> None:
        """Add the words that describe a picture."""
        if label := one_line(label or ""):
            self.parts["alt_texts"] += 1
            if self.headings:
                self.labels.append(label)
            else:
                self.pieces.append(f" {label} ")

    def add_picture(self, node: LexborNode) -> None:
        self.add_label(node.attributes.get("alt"))

    def describe_drawing(self, node: LexborNode) -> None:
        """Add the title or description of a drawing."""
        if self._drawings:
            self.add_label(node.text())

    def begin_drawing(self, node: LexborNode) -> None:
        self.pieces.append(" ")
        self._drawings += 1
        self.add_label(node.attributes.get("aria-label"))

    def end_drawing(self, _: LexborNode) -> None:
        self.pieces.append(" ")
        self._drawings -= 1

    def begin_line(self, node: LexborNode) -> None:
        """Begin a piece of a drawing's text, which may have a place of its own."""
        self.pieces.append(" " if {"x", "y", "dy"} & node.attributes.keys() else "")

    def begin_link(self, node: LexborNode) -> None:
        # A link beside another one, or the number of a note.
        if self._link_end == len(self.pieces) or "noteref" in (node.attributes.get("epub:type") or ""):
            self.pieces.append(" ")
        self._link_start = len(self.pieces)

    def end_link(self, _: LexborNode) -> None:
        self._links += 1
        self._linked += len(one_line("".join(self.pieces[self._link_start :])))
        self._link_end = self._link_start = len(self.pieces)

    def begin_superscript(self, node: LexborNode) -> None:
        # The number of a note isn't part of the word before it.
        is_note = any(child.tag == "a" for child in node.iter())
        self.pieces.append(f" {superscripts.BEGIN}" if is_note else superscripts.BEGIN)

    def end_superscript(self, _: LexborNode) -> None:
        self.pieces.append(superscripts.END)

    def begin_ruby(self, _: LexborNode) -> None:
        self._joins_reading = bool(self.readings) and self._reading_end == len(self.pieces)

    def end_ruby(self, _: LexborNode) -> None:
        self._reading_end = len(self.pieces)

    def set_aside(self, _: LexborNode) -> None:
        """Keep the text before a reading or label, to go on with it afterwards."""
        self._before.append(self.pieces)
        self.pieces = []

    def end_reading(self, _: LexborNode) -> None:
        reading, self.pieces = one_line(superscripts.write_exponents("".join(self.pieces))), self._before.pop()
        if reading and self._joins_reading and self.readings:
            self.readings[-1] += reading
        elif reading:
            self.readings.append(reading)
            self._joins_reading = True

    def begin_button(self, node: LexborNode) -> None:
        if self.headings:
            self.set_aside(node)
        else:
            self.pieces.append(" ")

    def end_button(self, _: LexborNode) -> None:
        if self.headings:
            label, self.pieces = superscripts.write_exponents("".join(self.pieces)), self._before.pop()
            self.labels.append(label)
        else:
            self.pieces.append(" ")

    def begin_fraction(self, _: LexborNode) -> None:
        self._fractions += 1

    def end_fraction(self, _: LexborNode) -> None:
        self._fractions -= 1

    def begin_power(self, _: LexborNode) -> None:
        self._powers += 1

    def end_power(self, _: LexborNode) -> None:
        self._powers -= 1

    def begin_root(self, _: LexborNode) -> None:
        self.pieces.append("√")

    def begin_equation(self, node: LexborNode) -> None:
        self.parts["equations"] += 1
        holder = node.parent
        # KaTeX writes an equation a second time, as it looks.
        if holder is not None and holder.next is not None and holder.attributes.get("class") == "katex-mathml":
            self.repeated.add(holder.next.mem_id)

    def add_input(self, node: LexborNode) -> None:
        """Add what an input of a form shows."""
        attributes = node.attributes
        kind = (attributes.get("type") or "").lower()
        self.asks_password |= kind == "password"
        if kind == "image":
            self.add_picture(node)
        elif kind in _TICKS:
            self.add_value("☑" if "checked" in attributes else "", node)
        elif kind in _SHOWN_INPUTS:
            self.add_value(attributes.get("value") or "", node)

    def add_choice(self, node: LexborNode) -> None:
        """Add the chosen options of a list, or the first, which programs show then; the others follow the block."""
        options = node.css("option")
        chosen = [each for each in options if "selected" in each.attributes] or options[:1]
        names = {each.mem_id: each.attributes.get("label") or one_line(each.text()) for each in options}
        self.add_value(", ".join(filter(None, (names.pop(each.mem_id) for each in chosen))), node)
        self.options += filter(None, (", ".join(filter(None, names.values())),))

    def add_lines(self, node: LexborNode) -> None:
        """Add what a field of several lines shows."""
        self.add_value(node.text().replace("\n", BREAK), node)

    def add_value(self, value: str, node: LexborNode) -> None:
        """Add a field's value, or what the field shows without one."""
        if value.strip():
            self.parts["form_fields"] += 1
        else:
            value = node.attributes.get("placeholder") or ""
        self.pieces.append(f" {value} ")


def _is_power(node: LexborNode) -> bool:
    """Whether it is what an equation puts above the line: the second element of two."""
    before = node.prev
    while before is not None and not before.is_element_node:
        before = before.prev
    return before is not None and node.parent is not None and node.parent.tag == "msup"


_Handler = Callable[[InlineText, LexborNode], None]
_BEGINNINGS: Mapping[str, _Handler] = {
    **dict.fromkeys(("img", "area"), InlineText.add_picture),
    **dict.fromkeys(("title", "desc"), InlineText.describe_drawing),
    **dict.fromkeys(("text", "mtd", "mtext", "object", "output"), InlineText.stand_apart),
    **dict.fromkeys(("rt", "rtc"), InlineText.set_aside),
    **dict.fromkeys(("msqrt", "mroot"), InlineText.begin_root),
    "a": InlineText.begin_link,
    "button": InlineText.begin_button,
    "input": InlineText.add_input,
    "math": InlineText.begin_equation,
    "mfrac": InlineText.begin_fraction,
    "msup": InlineText.begin_power,
    "ruby": InlineText.begin_ruby,
    "select": InlineText.add_choice,
    "sup": InlineText.begin_superscript,
    "svg": InlineText.begin_drawing,
    "textarea": InlineText.add_lines,
    "tspan": InlineText.begin_line,
}
_ENDS: Mapping[str, _Handler] = {
    **dict.fromkeys(("text", "mtd", "mtext", "object", "output"), InlineText.stand_apart),
    **dict.fromkeys(("rt", "rtc"), InlineText.end_reading),
    "a": InlineText.end_link,
    "button": InlineText.end_button,
    "mfrac": InlineText.end_fraction,
    "msup": InlineText.end_power,
    "ruby": InlineText.end_ruby,
    "sup": InlineText.end_superscript,
    "svg": InlineText.end_drawing,
}
