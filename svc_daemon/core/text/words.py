"""Words: parses queries, computes stems, and handles scripts that are written without spaces.

Chinese, Japanese and Korean text is split into overlapping pairs of characters, in the index and in queries, because
no spaces separate its words.

The stems computed here are not those of the search index, which `languages` has. They are coarser, for English only,
and serve to compare a question with the sentences of the passages that a search has found.
"""

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

_SCRIPTS = (
    "\u3005-\u3007"  # marks used like Han characters
    "\u3041-\u3096\u309d-\u309f"  # Hiragana
    "\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # Katakana, including small and half-width
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"  # Han
    "\uac00-\ud7a3"  # Hangul
)
_CHARACTER = re.compile(rf"[{_SCRIPTS}]")
# Find words first, then the characters of these scripts in each word; one pattern for both would take quadratic time.
_WORD = re.compile(r"\w+")
_PIECE = re.compile(rf"(?P<run>[{_SCRIPTS}]+)|[^{_SCRIPTS}\W]+")


def cut_unspaced(text: str) -> list[str]:
    """Find the words in scripts without spaces, and split them into overlapping pairs of characters.

    Parts of these words in other scripts stay whole. The list is empty if the text has no such words.
    """
    if text.isascii():
        return []
    # Normalize: a Japanese kana may be one character or two, and a Korean syllable up to three.
    folded = unicodedata.normalize("NFC", text)
    if not _CHARACTER.search(folded):
        return []
    pieces: list[str] = []
    for match in _PIECE.finditer(" ".join(word for word in _WORD.findall(folded) if _CHARACTER.search(word))):
        run = match["run"]
        if run is None or len(run) == 1:
            pieces.append(match[0])
        else:
            pieces += (run[start : start + 2] for start in range(len(run) - 1))
    return pieces


#: Maximum number of words of a query; the first words of a pasted text are enough.
MAX_WORDS = 64

#: English words that are in almost every chunk. They include the parts of `don't`, `it's` and the like.
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


def split_words(text: str) -> list[str]:
    """Split a text into words in lower case, in order.

    Words are letters, combining marks and digits. `cut_unspaced` splits scripts without spaces.
    """
    # Normalize: a letter with a combining accent becomes one character.
    folded = unicodedata.normalize("NFC", text).lower()
    # Keep combining marks: many scripts write vowels with them.
    separators = {ord(each): " " for each in set(folded) if unicodedata.category(each)[0] not in "LMN"}
    spelled = (word for word in folded.translate(separators).split() if any(map(str.isalnum, word)))
    return [piece for word in spelled for piece in cut_unspaced(word) or [word]]


@dataclass(frozen=True, slots=True)
class WordQuery:
    """The distinct words of a query, in the order typed."""

    words: tuple[str, ...]
    #: How many words beyond `MAX_WORDS` were ignored.
    words_left_out: int = 0


ParsedQuery = WordQuery


def parse_query(text: str) -> ParsedQuery:
    """Split a query into its distinct words, without stop words.

    A query of stop words only, such as "to be or not to be", keeps its words.
    """
    words = list(dict.fromkeys(split_words(text)))
    significant = [word for word in words if word not in STOP_WORDS] or words
    return ParsedQuery(tuple(significant[:MAX_WORDS]), max(0, len(significant) - MAX_WORDS))


_ENDING = re.compile(r"(?:ations?|ings?|edly|ied|ies|ed|es|ly|s)$")
#: Minimum length of a stem; unrelated words would share shorter stems.
_SHORTEST = 3
#: Irregular forms and a few synonyms; the first of each group replaces the others.
_FORMS = (
    "become became, begin began begun, break broke broken, bring brought, build built, buy bought, catch caught, "
    "child children kid kids, choose chose chosen choice choices, come came, do did done, draw drew drawn, drive "
    "drove driven, eat ate eaten, fall fell fallen, feed fed, foot feet, forget forgot forgotten, freeze froze "
    "frozen, give gave given, go goes went gone going, grow grew grown, hide hid hidden, hold held, keep kept, know "
    "knew known, lead led, lend lent, lose lost, make made, man men, meet met, pay paid payment payments, rise rose "
    "risen, run ran, say said says, see saw seen sees, sell sold sale sales, send sent, show shown, sit sat, sleep "
    "slept, speak spoke spoken, spend spent, stand stood, steal stole stolen, take took taken, teach taught, tell "
    "told, think thought, throw threw thrown, understand understood, use used uses using, wear wore worn, win won, "
    "woman women, write wrote written author authors, center centre centres, color colour colours coloured, gray "
    "grey, license licence licences, meter metre metres, tire tyre tyres"
)
FORMS = {form: forms.split()[0] for forms in _FORMS.split(",") for form in forms.split()[1:]}


@lru_cache(maxsize=2**15)
def stem_of(word: str) -> str:
    """Return the word in lower case without its ending; irregular forms are replaced."""
    word = word.lower()
    word = FORMS.get(word, word)
    match = _ENDING.search(word)
    cut = word[: match.start()] if match and match.start() >= _SHORTEST else word
    bare = cut.rstrip("eiy")
    if len(bare) > _SHORTEST and bare[-1] == bare[-2] and bare[-1].isalpha():
        # Remove a doubled consonant: `stopped` becomes `stop`.
        bare = bare[:-1]
    return bare if len(bare) >= _SHORTEST else cut


def words_of(text: str) -> list[str]:
    """Split a text into words and numbers, in lower case."""
    return _WORD.findall(unicodedata.normalize("NFC", text).lower())


def stems_of(text: str) -> frozenset[str]:
    """Return the stems of all words and numbers except stop words."""
    return frozenset(stem_of(word) for word in words_of(text) if word not in STOP_WORDS)
