"""Languages: stems of words, the words that are in almost every text, and a guess of a text's language."""

# ruff: noqa: RUF001 - letters of many scripts look alike

import re
import threading
from collections import Counter
from collections.abc import Callable, Collection
from functools import lru_cache

import snowballstemmer

from svc_daemon.core.text.words import STOP_WORDS

#: The languages that have stems, and the names of their algorithms.
_STEMMED = (
    "ar arabic, da danish, de german, el greek, en english, es spanish, fi finnish, fr french, hu hungarian, "
    "it italian, nl dutch, no norwegian, pt portuguese, ro romanian, ru russian, sv swedish, ta tamil, tr turkish"
)
STEMMERS: dict[str, str] = {each.split()[0]: each.split()[1] for each in _STEMMED.split(",")}
#: Longer words are names, numbers and rubbish.
LONGEST_STEMMED = 40
#: Maximum number of stems that are kept: the words of a language that are more than rare.
MOST_STEMS = 50_000

#: Words that are in almost every text of a language.
_COMMON = {
    "ar": "في من على إلى عن أن هذا هذه التي الذي مع كان لا ما هو هي كل بعد قد أو ثم",
    "da": "og i at det en den til er som på de med han af for ikke der var mig sig men et har om vi havde fra blev kan",
    "de": "der die das und in den von zu mit sich des auf für ist im dem nicht ein eine als auch es an werden aus er "
    "hat dass sie nach wird bei einer um am sind noch wie einem über so zum war haben nur oder aber vor zur bis mehr "
    "durch man sein wurde kann wir ich ihr einen eines wenn unter was",
    "el": "και το να του η της με που την από για τα είναι των σε ο οι στο θα τη στην τον τους δεν τις ένα μια",
    "es": "de la que el en y a los se del las un por con no una su para es al lo como más pero sus le ya o este sí "
    "porque esta entre cuando muy sin sobre también me hasta hay donde quien desde son",
    "fi": "ja on ei se hän että oli mutta joka en ovat kun niin myös jos sen tai ole mitä vain hänen kuin tämä siitä "
    "olen voi sitä mukaan",
    "fr": "de la le et les des en un du une que est pour qui dans a par plus pas au sur ne se ce il sont la avec son "
    "elle aux nous vous mais ou leur cette ces été être je on tout d l qu n s c j",
    "hu": "a az és hogy nem is egy meg ez de van volt csak el már mint azt kell még ha vagy amely ki lesz fel minden",
    "it": "di e il la che in un a per è una sono non con si da come del le dei nel alla più i ma della al gli lo anche "
    "questo delle ha o se ci degli dalla essere l dell",
    "nl": "de het een van en in is dat op te zijn met voor niet aan er om hij als ook maar dan naar of uit bij nog wat "
    "heeft door over deze ze worden je wordt ik deze hebben kan",
    "no": "og i det er på som en til av at for med de han ikke den har et var jeg om fra men så kan vi ble eller skal "
    "ved seg hun sin ut",
    "pt": "de a o que e do da em um para com não uma os no se na por mais as dos como mas ao ele das seu sua ou quando "
    "muito nos já eu também pelo pela até isso são",
    "ro": "de și în a la cu care o din pe nu un mai că să este pentru ce prin sau sunt după au dar fost fi s ale lui",
    "ru": "и в не на что с он я как это по но к из у за от так его для она мы же бы о то все был или при только вы "
    "если когда уже до",
    "sv": "och i att det som en på är av för med den till inte har de ett om han var jag men sig från vi så kan när "
    "eller nu efter vid ska finns",
    "ta": "ஒரு என்று மற்றும் இந்த இது என்ற கொண்டு என்பது பல ஆகும் அல்லது அவர் நான் உள்ள அந்த",
    "tr": "ve bir bu için de da ne ile çok daha gibi olarak o en olan var ama kadar değil sonra mi ben her ki ya "
    "veya olduğu",
}
COMMON = {"en": STOP_WORDS, **{language: frozenset(words.split()) for language, words in _COMMON.items()}}
#: The languages that have each of these words. Single letters are signs of too many.
_HAVING: dict[str, list[str]] = {}
for _language, _words in COMMON.items():
    for _word in _words:
        if len(_word) > 1 or not _word.isascii():
            _HAVING.setdefault(_word, []).append(_language)

_LETTERS = re.compile(r"[^\W\d_]+")
#: Letters of languages that are written in the script of another one which has stems.
_OTHERS = re.compile("[іїєґўђјљњћџѓќ]|[پچژگٹڈڑےۓ]|[ąęłńśźżčřšžůěľĺŕạảấầậắằặẹếềệịỉọốồộớờợụứừựỳỷỹđħġċāēīūģķļņ]")
#: Characters of a text that are looked at.
SAMPLE = 2000


def guess_language(text: str) -> str:
    """Return the code of the text's language, such as `de`, if it has stems and the text shows it; "" otherwise."""
    sample = text[:SAMPLE].lower()
    words = _LETTERS.findall(sample)[:200]
    votes = Counter(language for word in words for language in _HAVING.get(word, ()))
    if not votes:
        return "en" if sample.isascii() and words else ""
    (best, most), *others = votes.most_common(2)
    foreign = len(_OTHERS.findall(sample))
    # At least every twelfth word of a text is common in its language; those of its relatives have half of these.
    is_clear = most * 12 >= len(words) and foreign * 20 <= len(sample) and (most > foreign or best == "en")
    if is_clear and (not others or most > others[0][1]):
        return best
    return "en" if sample.isascii() and (votes["en"] or most < 2) else ""


class _Stemmers(threading.local):
    """The stemmers of one thread: each keeps the word that it works on."""

    def __init__(self) -> None:
        self.of: dict[str, Callable[[str], str]] = {}


_STEMMERS = _Stemmers()


@lru_cache(MOST_STEMS)
def stem(word: str, language: str) -> str:
    """Return the stem of a word in lower case; the word itself if the language has no stems."""
    if language not in STEMMERS or len(word) > LONGEST_STEMMED:
        return word
    if language not in _STEMMERS.of:
        _STEMMERS.of[language] = snowballstemmer.stemmer(STEMMERS[language]).stemWord
    return _STEMMERS.of[language](word) or word


def language_of_query(words: Collection[str], languages: Collection[str]) -> str:
    """Return which of the languages has the most of these among its common words, the first of several."""
    return max(languages, key=lambda each: sum(word in COMMON.get(each, ()) for word in words), default="")
