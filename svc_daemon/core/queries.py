"""A user's query as the words to look for: nothing in it is syntax, and what carries no meaning is left out."""

import unicodedata
from dataclasses import dataclass

from svc_daemon.core.unspaced import cut_unspaced

#: Each word costs a walk through the chunks that have it; past this many a query is a text, and its first words say
#: what it is about.
MAX_WORDS = 64

#: English words that stand in almost every chunk and tell none from another. The pieces that an apostrophe leaves
#: (`don't`, `it's`, `we'll`) are among them, since the index cuts there too.
_STOP_WORDS = (
    "a about above after again against all also am an and any are aren as at be because been "
    "before being below between both but by can cannot could couldn d did didn do does doesn "
    "doing don down during each either else few for from further get gets getting got had hadn "
    "happen happens has hasn have haven having he her here hers herself him himself his how "
    "however i if in into is isn it its itself just know let lets like ll m many may me mean "
    "means might more most much must my myself need needs neither no nor not of off on once only "
    "or other ought our ours ourselves out over own please re s same shall shan she should "
    "shouldn since so some such t tell than that the their theirs them themselves then there "
    "these they this those through to too under until up upon us ve very want wants was wasn we "
    "were weren what when where whether which while who whom whose why will with within without "
    "won would wouldn you your yours yourself yourselves"
)
STOP_WORDS = frozenset(_STOP_WORDS.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedQuery:
    """The words to look for, each once, in the order typed."""

    words: tuple[str, ...]
    #: How many words past `MAX_WORDS` were left out.
    words_left_out: int = 0


def parse_query(text: str) -> ParsedQuery:
    """Cut `text` into words of letters, marks and digits; every other character only parts them.

    Scripts that are written without spaces are cut as `unspaced` does it.

    Stop words go, unless the query has nothing else: who looks for "to be or not to be" means it.
    """
    words = list(dict.fromkeys(_words(text)))
    telling = [word for word in words if word not in STOP_WORDS] or words
    return ParsedQuery(words=tuple(telling[:MAX_WORDS]), words_left_out=max(0, len(telling) - MAX_WORDS))


def _words(text: str) -> list[str]:
    # NFC first, so that a letter typed as letter and accent is one character.
    folded = unicodedata.normalize("NFC", text).lower()
    spaced = "".join(character if _belongs_to_word(character) else " " for character in folded)
    words = [word for word in spaced.split() if any(character.isalnum() for character in word)]
    return [piece for word in words for piece in cut_unspaced(word) or [word]]


def _belongs_to_word(character: str) -> bool:
    # Marks stay: many scripts write vowels with them, and a word cut there would be a row of single letters.
    return unicodedata.category(character)[0] in "LMN"
