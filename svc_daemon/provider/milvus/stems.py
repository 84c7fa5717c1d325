"""The stems that are sent to Milvus, for its analyzer to split at spaces.

Milvus's stemmers are not FTS5's, and milvus-lite has none. So words are split, stemmed and freed of accents here, as in
the embedded index, and words with other characters than ASCII letters and digits are encoded, so that no analyzer
changes them.
"""

import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from svc_daemon.core.text.porter import porter_stem
from svc_daemon.core.text.words import split_words
from svc_daemon.provider.milvus.schema import TEXT_BYTES

#: How often a word in the title counts, as in the embedded index.
TITLE_WEIGHT = 2
#: Begins the encoded form of a word, which no English word does.
_ENCODED = "0q"
_ACCENTS = range(0x300, 0x370)
#: A stem takes 10 microseconds; most words of a document are among the common ones.
MOST_CACHED = 50_000


@lru_cache(MOST_CACHED)
def stem(word: str) -> str:
    """Return the form of a word in lower case that is indexed and searched: ASCII letters and digits only."""
    if not word.isascii():
        decomposed = unicodedata.normalize("NFD", word)
        word = unicodedata.normalize("NFC", "".join(each for each in decomposed if ord(each) not in _ACCENTS))
    stemmed = porter_stem(word)
    return stemmed if stemmed.isascii() and stemmed.isalnum() else _ENCODED + stemmed.encode(errors="replace").hex()


def list_stems(text: str) -> list[str]:
    """List the stems of all words, in order."""
    return [stem(word) for word in split_words(text)]


def pack_stems(title_stems: Iterable[str], headings: Iterable[str], text: str) -> str:
    """Join the stems of a chunk's parts to the field that Milvus analyses; what is too long for it is left out."""
    packed = " ".join([*[*title_stems] * TITLE_WEIGHT, *list_stems(" ".join([*headings, text]))])
    return packed if len(packed) <= TEXT_BYTES else packed[:TEXT_BYTES].rpartition(" ")[0]
