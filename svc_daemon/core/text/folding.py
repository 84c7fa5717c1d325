"""Folding: brings the ways to write one word together, the same for what is indexed and for what is asked.

A text is normalized first, character by character, so that each keeps its place in the text. Then a word is folded:
upper and lower case, marks, and letters that look alike or are typed alike become one.
"""

# ruff: noqa: RUF001 - letters of many scripts look alike

import unicodedata
from collections.abc import Sequence

#: Marks of one character beyond these are dropped; hostile texts have thousands, and sorting them takes long.
MOST_MARKS = 30
#: Characters without a glyph that aren't in Unicode's category of formats.
_IGNORED = frozenset(
    chr(code)
    for first, last in (
        *((0x34F, 0x34F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x3164, 0x3164), (0xFE00, 0xFE0F)),
        *((0xFFA0, 0xFFA0), (0xE0100, 0xE01EF)),
    )
    for code in range(first, last + 1)
)
#: Typographic variants, and the characters that keyboards have.
_TYPED = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛ʼʻʹ՚`´′׳״", "'"),
        **dict.fromkeys("‐‑‒–—―−⁃⸗־˗·", "-"),
        **dict.fromkeys("⁄∕", "/"),
        "¶": "§",
        "٫": ".",
        "٬": ",",
    }
)
#: Letters that have no mark to take away, each before the plain one that is typed for it.
_PAIRS = "øo łl đd ðd ħh ıi ŧt ɓb ɗd ƙk ƒf əe ɛe ɔo ɨi ʉu ĸk ŋn ςσ ىي یي کك ةه ہه ھه ٱا ѐе ѝи"
_PLAIN = str.maketrans(
    {**{pair[0]: pair[1] for pair in _PAIRS.split()}, "æ": "ae", "œ": "oe", "þ": "th", "ß": "ss", "ـ": None}
)
#: Blocks of marks that are folded. Marks of other scripts are vowels, or make another letter.
_MARKS = (
    *((0x300, 0x36F), (0x483, 0x487), (0x591, 0x5C7), (0x610, 0x61A), (0x64B, 0x65F), (0x670, 0x670)),
    *((0x6D6, 0x6ED), (0x1AB0, 0x1AFF), (0x1DC0, 0x1DFF), (0x20D0, 0x20FF), (0xFE20, 0xFE2F)),
)


class _Foldings(dict[int, str | None]):
    """What each character becomes, for `str.translate`: worked out once."""

    def __missing__(self, code: int) -> str | None:
        folded: str | None = chr(code)
        # The Cyrillic short i is a letter of its own, on which stems depend.
        if chr(code) != "й":
            decomposed = unicodedata.normalize("NFD", chr(code)).translate(_PLAIN)
            kept = "".join(each for each in decomposed if not any(low <= ord(each) <= high for low, high in _MARKS))
            folded = unicodedata.normalize("NFC", kept) or None
        self[code] = folded
        return folded


_FOLDINGS = _Foldings()


def fold(word: str) -> str:
    """Return the word in lower case, without marks and with plain letters. Folding again changes nothing."""
    if word.isascii():
        return word.lower()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFC", word.casefold()).translate(_FOLDINGS)).lower()


class _Kinds(dict[str, str]):
    """What is done with each character: `+` extends the one before it, `-` is left out, `.` begins a character."""

    def __missing__(self, character: str) -> str:
        category = unicodedata.category(character)
        if category == "Cf" or character in _IGNORED:
            kind = "-"
        else:
            # Vowels and finals of decomposed Hangul, and the voicing marks of half-width kana.
            is_part = "\u1160" <= character <= "\u11ff" or character in "\uff9e\uff9f"
            kind = "+" if category[0] == "M" or is_part else "."
        self[character] = kind
        return kind


_KINDS = _Kinds()


class _Normal(dict[str, str]):
    """The normalized form of each character with its marks, for short ones."""

    def __missing__(self, cluster: str) -> str:
        # The signs of trade marks aren't letters of the word before them.
        normal = " " if cluster in "™℠" else unicodedata.normalize("NFKC", cluster.translate(_TYPED)).translate(_TYPED)
        normal = "".join(str(unicodedata.decimal(each, each)) for each in normal)
        if len(cluster) == 1:
            self[cluster] = normal
        return normal


_NORMAL = _Normal()


def normalize(text: str) -> tuple[str, Sequence[int], Sequence[int]]:
    """Return the text as its readers see it, and for each of its characters where it starts and ends in the text.

    Compatibility variants are replaced, characters without a glyph left out; digits are those of ASCII.
    """
    if text.isascii():
        return text.replace("`", "'"), range(len(text)), range(1, len(text) + 1)
    pieces: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    kinds = [_KINDS[each] for each in text] + ["."]
    start = 0
    while start < len(text):
        end = start + 1
        while kinds[end] != ".":
            end += 1
        cluster = text[start:end]
        if end - start > 1 or kinds[start] == "-":
            kept = [each for each, kind in zip(cluster, kinds[start:end], strict=True) if kind != "-"]
            cluster = "".join(kept[: MOST_MARKS + 1])
        normal = _NORMAL[cluster]
        pieces.append(normal)
        starts += [start] * len(normal)
        ends += [end] * len(normal)
        start = end
    return "".join(pieces), starts, ends
