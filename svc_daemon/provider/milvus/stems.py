"""Computes the word stems that Milvus indexes, the same stems as in the SQLite index.

Words with characters other than ASCII letters and digits are encoded, so that Milvus doesn't change them.
"""

import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from svc_daemon.core.text.porter import porter_stem
from svc_daemon.core.text.words import split_words
from svc_daemon.provider.milvus.schema import TEXT_BYTES

#: How many times a word in the title counts, as in the SQLite index.
TITLE_WEIGHT = 2
#: Prefix of words that are encoded in hexadecimal. No English word begins with it.
_ENCODED = "0q"
_ACCENTS = range(0x300, 0x370)
#: Maximum number of cached stems. This is enough for the common words, which make up most of a document.
MOST_CACHED = 50_000


@lru_cache(MOST_CACHED)
def stem(word: str) -> str:
    """Return the stem under which a lowercase word is indexed. It has only ASCII letters and digits."""
    if not word.isascii():
        decomposed = unicodedata.normalize("NFD", word)
        word = unicodedata.normalize("NFC", "".join(each for each in decomposed if ord(each) not in _ACCENTS))
    stemmed = porter_stem(word)
    return stemmed if stemmed.isascii() and stemmed.isalnum() else _ENCODED + stemmed.encode(errors="replace").hex()


def list_stems(text: str) -> list[str]:
    """List the stems of the text's words, in order."""
    return [stem(word) for word in split_words(text)]


def pack_stems(title_stems: Iterable[str], headings: Iterable[str], text: str) -> str:
    """Join the stems of a chunk's title, headings and text, cut to the field's size."""
    packed = " ".join([*[*title_stems] * TITLE_WEIGHT, *list_stems(" ".join([*headings, text]))])
    return packed if len(packed) <= TEXT_BYTES else packed[:TEXT_BYTES].rpartition(" ")[0]
