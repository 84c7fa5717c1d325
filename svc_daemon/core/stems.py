"""Words without their endings, so that two texts can be seen to speak of the same thing.

Coarser than the index's own stemming, and only for English: it chooses among sentences that a search has found already,
and must take all forms of a word as one, whether they differ by an ending, by a vowel or by British and American
spelling.
"""

import re
import unicodedata

from svc_daemon.core.queries import STOP_WORDS

_WORD = re.compile(r"\w+")
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
    """The stems of the words that tell something; numbers among them."""
    return frozenset(stem_of(word) for word in words_of(text) if word not in STOP_WORDS)
