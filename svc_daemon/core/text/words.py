"""Words: the words of a query, stems that make forms of a word comparable, and scripts without spaces.

Chinese, Japanese and Korean are written without spaces, or with endings that stick to the word. Cut at spaces, a
whole clause of these scripts is one word, which nobody searches for. So a run of them is cut into every pair of
neighbours, in what is indexed and in what is asked: a word of two characters is a pair, and a longer one is all of its
pairs. Letters and digits in such a run are words of their own.

Stems are coarser than the index's own, and only for English: they choose among sentences that a search has found
already, and must take all forms of a word as one, whether they differ by an ending, by a vowel or by British and
American spelling.
"""

import re
import unicodedata
from dataclasses import dataclass

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
    """The pairs and the other pieces of all words of `text` with one of these scripts, in order.

    Nothing for a text without them. A single character by itself is a word.
    """
    if text.isascii():
        return []
    # A kana and its mark may be two characters or one, and a syllable of Hangul up to three.
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


#: Each word costs a walk through the chunks that have it; past this many a query is a text, and its first words
#: show what it is about.
MAX_WORDS = 64

#: English words that are in almost every chunk and distinguish none from another. The pieces that an apostrophe leaves
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


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """The words to look for, each once, in the order typed."""

    words: tuple[str, ...]
    #: How many words past `MAX_WORDS` were left out.
    words_left_out: int = 0


def parse_query(text: str) -> ParsedQuery:
    """Cut `text` into words of letters, marks and digits; every other character only separates them.

    Scripts that are written without spaces are cut by `cut_unspaced`. Stop words are left out, unless the query has
    nothing else: who looks for "to be or not to be" means it.
    """
    # NFC first, so that a letter typed as letter and accent is one character.
    folded = unicodedata.normalize("NFC", text).lower()
    # Marks stay: many scripts write vowels with them, and a word cut there would be a row of single letters.
    spaced = "".join(character if unicodedata.category(character)[0] in "LMN" else " " for character in folded)
    spelled = (word for word in spaced.split() if any(map(str.isalnum, word)))
    words = list(dict.fromkeys(piece for word in spelled for piece in cut_unspaced(word) or [word]))
    significant = [word for word in words if word not in STOP_WORDS] or words
    return ParsedQuery(tuple(significant[:MAX_WORDS]), max(0, len(significant) - MAX_WORDS))


_ENDING = re.compile(r"(?:ations?|ings?|edly|ied|ies|ed|es|ly|s)$")
#: A shorter rest would be the same for words that have nothing in common.
_SHORTEST = 3
#: Forms of a word that share no stem, and a few words that mean the same; all count as the first of their group.
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


def stem_of(word: str) -> str:
    """The word in small letters, or the first of its forms, less a plural's, participle's or adverb's ending."""
    word = word.lower()
    word = FORMS.get(word, word)
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
    """The stems of the words but stop words; numbers among them."""
    return frozenset(stem_of(word) for word in words_of(text) if word not in STOP_WORDS)
