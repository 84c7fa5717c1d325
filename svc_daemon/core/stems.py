"""Words without their endings, so that two texts can be seen to speak of the same thing.

Coarser than the index's own stemming, and only for English endings: it chooses among sentences that a search has found
already, and must never tell two forms of a word apart.
"""

import re
import unicodedata

from svc_daemon.core.queries import STOP_WORDS

_WORD = re.compile(r"\w+")
_ENDING = re.compile(r"(?:ations?|ings?|edly|ied|ies|ed|es|ly|s)$")
#: A shorter rest would be the same for words that have nothing in common.
_SHORTEST = 3


def stem_of(word: str) -> str:
    """The word in small letters, less a plural's, participle's or adverb's ending."""
    word = word.lower()
    match = _ENDING.search(word)
    cut = word[: match.start()] if match and match.start() >= _SHORTEST else word
    bare = cut.rstrip("eiy")
    if len(bare) > _SHORTEST and bare[-1] == bare[-2] and bare[-1].isalpha():
        # `stopped` and `stop`
        bare = bare[:-1]
    return bare if len(bare) >= _SHORTEST else cut


def words_of(text: str) -> list[str]:
    """Every word and number in small letters, in order."""
    return _WORD.findall(unicodedata.normalize("NFC", text).lower())


def stems_of(text: str) -> frozenset[str]:
    """The stems of the words that tell something; numbers among them."""
    return frozenset(stem_of(word) for word in words_of(text) if word not in STOP_WORDS)
