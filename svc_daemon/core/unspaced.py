"""Chinese, Japanese and Korean, which are written without spaces, or with endings that stick to the word.

Where words are cut at spaces, a whole clause of these scripts is one word, which nobody looks for. So a run of them is
cut into every pair of neighbours, in what is indexed and in what is asked: a word of two characters is a pair, and a
longer one is all of its pairs. Letters and digits that stand in such a run are words of their own.
"""

import re
import unicodedata
from collections.abc import Iterator

_SCRIPTS = (
    "\u3005-\u3007"  # marks that stand for a Han character
    "\u3041-\u3096\u309d-\u309f"  # Hiragana
    "\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # Katakana, small and of half width
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"  # Han
    "\uac00-\ud7a3"  # Hangul
)
_CHARACTER = re.compile(rf"[{_SCRIPTS}]")
# Every word, and then a look into it: one expression for words with such a character would try each place of a long
# word without one against all that follows.
_WORD = re.compile(r"\w+")
_PIECE = re.compile(rf"(?P<run>[{_SCRIPTS}]+)|[^{_SCRIPTS}\W]+")


def cut_unspaced(text: str) -> list[str]:
    """The pairs and the other pieces of all words of `text` in which one of these scripts stands, in order.

    Nothing for a text without them. A single character that stands alone is a word.
    """
    if text.isascii():
        return []
    # A kana and its mark may be two characters or one, and a syllable of Hangul up to three.
    folded = unicodedata.normalize("NFC", text)
    if not _CHARACTER.search(folded):
        return []
    return [piece for word in _WORD.findall(folded) if _CHARACTER.search(word) for piece in _pieces(word)]


def _pieces(word: str) -> Iterator[str]:
    for piece in _PIECE.finditer(word):
        run = piece["run"]
        if run is None or len(run) == 1:
            yield piece[0]
        else:
            yield from (run[start : start + 2] for start in range(len(run) - 1))
