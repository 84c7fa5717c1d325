"""Letters of the fonts Symbol and Wingdings as the characters that they look like."""

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
_FONTS = {"symbol": _SYMBOL, "wingdings": _WINGDINGS, "wingdings 2": _WINGDINGS_2}
#: Fonts of symbols have their letters in this private area, too.
_PRIVATE = 0xF000


def is_symbol_font(font: str | None) -> bool:
    return (font or "").lower() in _FONTS


def symbols(text: str, font: str | None) -> str:
    """Return text in one of these fonts as usual characters; text in other fonts stays as it is."""
    letters = _FONTS.get((font or "").lower())
    if letters is None:
        return text
    return "".join(letters.get(ord(each) - _PRIVATE if ord(each) >= _PRIVATE else ord(each), each) for each in text)
