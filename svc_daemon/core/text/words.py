"""Words of a question and of sentences, and their stems, to compare a question with what a search has found.

These stems are not those of the search index, which `languages` has. They are coarser, and for English only.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator
from functools import lru_cache
from itertools import pairwise

_WORD = re.compile(r"\w+")
#: Text of a script that sets no words apart.
_UNSPACED = re.compile("[\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]{2,}")
_CAMEL = re.compile(r"(?<![^\W_])[^\W\d_]*[a-z][A-Z]\w*")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

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

_ENDING = re.compile(r"(?:ations?|ings?|edly|ied|ies|ed|es|ly|s)$")
#: Minimum length of a stem; unrelated words would share shorter stems.
_SHORTEST = 3
#: Irregular forms and a few synonyms; the first of each group replaces the others.
_FORMS = (
    "become became, begin began begun, break broke broken, bring brought, build built, buy bought, catch caught, "
    "child children kid kids, choose chose chosen choice choices, come came, long longer longest, heavy heavier "
    "heaviest, short shorter shortest, tall taller, wide wider, deep deeper, fast faster, cheap cheaper, large larger "
    "largest, small smaller smallest, die died dies dying death dead, do did done, draw drew drawn, drive drove "
    "driven, eat ate eaten, fall fell fallen, feed fed, foot feet, forget forgot forgotten, freeze froze frozen, give "
    "gave given, go goes went gone going, grow grew grown, hide hid hidden, hold held, keep kept, know knew known, "
    "lead led, lend lent, lose lost, make made, man men, meet met, pay paid payment payments, rise rose risen, run "
    "ran, say said says, see saw seen sees, sell sold sale sales, send sent, show shown, sit sat, sleep slept, speak "
    "spoke spoken, spend spent, stand stood, steal stole stolen, take took taken, teach taught, tell told, think "
    "thought, throw threw thrown, understand understood, use used uses using, wear wore worn, win won, woman women, "
    "write wrote written author authors, center centre centres, color colour colours coloured, gray grey, license "
    "licence licences, meter metre metres, tire tyre tyres"
)
FORMS = {form: forms.split()[0] for forms in _FORMS.split(",") for form in forms.split()[1:]}


#: How words begin in British and in American English.
_BRITISH = (
    "aluminium aluminum, anaem anem, armour armor, behaviour behavior, calibre caliber, catalogue catalog, centre "
    "center, cheque check, colour color, defence defense, dialogue dialog, diarrhoea diarrhea, encyclopaed encycloped, "
    "endeavour endeavor, favour favor, fibre fiber, flavour flavor, fulfil fulfill, grey gray, haem hem, harbour "
    "harbor, honour honor, humour humor, jewellery jewelry, judgement judgment, labour labor, leukaem leukem, licence "
    "license, litre liter, manoeuvr maneuver, metre meter, mould mold, neighbour neighbor, odour odor, oestro estro, "
    "offence offense, orthopaed orthoped, paediatr pediatr, plough plow, programme program, rumour rumor, sceptic "
    "skeptic, sulph sulf, theatre theater, tumour tumor, tyre tire, vapour vapor"
)
_BEGINNINGS = dict(pair.split() for pair in _BRITISH.split(","))
_BEGINNINGS |= {american: british for british, american in _BEGINNINGS.items()}
_BEGINNING = re.compile("|".join(sorted(_BEGINNINGS, key=len, reverse=True)))
_IZED = re.compile(r"(?<=[a-z]{3})(is|iz|ys|yz)(?=(?:e[drs]?|ers|ing|ations?|able)$)")
_DOUBLED = re.compile(r"(?<=[aeiou][b-df-hj-np-tv-z][aeo])(l{1,2})(?=(?:ed|ing|ers?)$)")
_SWAPPED = {"is": "iz", "iz": "is", "ys": "yz", "yz": "ys", "l": "ll", "ll": "l"}


#: Ways to write the same unit, which a text may have as a sign, and German endings that are written short.
_SAME_UNITS = (("€", "eur", "euro", "euros"), ("£", "gbp"))
_SHORT_ENDINGS = (("str", "straße", "strasse"), ("nr", "nummer"))
_SHORTEST_WITH_ENDING = 5


def spell_otherwise(word: str, languages: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield how else texts in these languages write a word in lower case, each with the language.

    In British or American English, as the sign of a currency, or with a German ending that is short: `Hauptstr.`
    """
    for units in _SAME_UNITS:
        if word in units:
            yield from ((unit, language) for unit in units if unit != word for language in languages)
    for endings in _SHORT_ENDINGS if "de" in languages and len(word) >= _SHORTEST_WITH_ENDING else ():
        for ending in endings:
            if word.endswith(ending) and (begun := word.removesuffix(ending)):
                # Also in a text whose language is unsure.
                yield from ((begun + other, each) for other in endings if other != ending for each in languages)
    if "en" in languages:
        if head := _BEGINNING.match(word):
            overseas = _BEGINNINGS[head[0]] + word[head.end() :]
        else:
            overseas = _DOUBLED.sub(lambda found: _SWAPPED[found[1]], _IZED.sub(lambda found: _SWAPPED[found[1]], word))
        if overseas != word:
            yield overseas, "en"


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


def pairs_of(text: str) -> set[str]:
    """Return each two characters that follow each other in Chinese, Japanese and Korean, as the search has them."""
    return {one + other for run in _UNSPACED.findall(text) for one, other in pairwise(run)}


def parts_of(text: str) -> list[str]:
    """Return the parts of a text's names in camel case: "Rate Limit Burst" for `RateLimitBurst`."""
    return [_HUMP.sub(" ", name) for name in _CAMEL.findall(text)]


def stems_of(text: str) -> frozenset[str]:
    """Return the stems of all words and numbers except stop words."""
    return frozenset(stem_of(word) for word in words_of(text) if word not in STOP_WORDS)
