"""Languages: stems of words, the words that are in almost every text, and a guess of a text's language."""

# ruff: noqa: RUF001 - letters of many scripts look alike

import re
from collections import Counter
from collections.abc import Collection
from functools import lru_cache
from itertools import chain

import tantivy

from svc_daemon.core.text.words import STOP_WORDS, words_of

#: The languages that have stems, and the names of their algorithms.
_STEMMED = (
    "ar arabic, da danish, de german, el greek, en english, es spanish, fi finnish, fr french, hu hungarian, "
    "it italian, nl dutch, no norwegian, pt portuguese, ro romanian, ru russian, sv swedish, ta tamil, tr turkish"
)
STEMMERS: dict[str, str] = {each.split()[0]: each.split()[1] for each in _STEMMED.split(",")}
#: Longer words are names, numbers and rubbish.
LONGEST_STEMMED = 40

#: Words that are in almost every text of a language.
_COMMON = {
    "ar": "في من على إلى عن أن هذا هذه التي الذي مع كان لا ما هو هي كل بعد قد أو ثم",
    "da": "og i at det en den til er som på de med han af for ikke der var mig sig men et har om vi havde fra blev kan "
    "skal være efter under måned mindst uden gennem selv denne dette",
    "de": "der die das und in den von zu mit sich des auf für ist im dem nicht ein eine als auch es an werden aus er "
    "hat dass sie nach wird bei einer um am sind noch wie einem über so zum war haben nur oder aber vor zur bis mehr "
    "durch man sein wurde kann wir ich ihr einen eines wenn unter was",
    "el": "και το να του η της με που την από για τα είναι των σε ο οι στο θα τη στην τον τους δεν τις ένα μια",
    "es": "de la que el en y a los se del las un por con no una fue su para es al lo como más pero sus le ya o este sí "
    "porque esta entre cuando muy sin sobre también me hasta hay donde quien desde son y hoy tiene",
    "fi": "ja on ei se hän että oli mutta joka en ovat kun niin myös jos sen tai ole mitä vain hänen kuin tämä siitä "
    "olen voi sitä mukaan "
    "ennen jälkeen vähintään sekä ovat oli",
    "fr": "de la le et les des en un du une que est pour qui dans a par plus pas au sur ne se ce il sont la avec son "
    "elle aux nous vous mais ou leur cette ces été être je on tout d l qu n s c j "
    "leurs avant après doit doivent peut sans sous chaque entre même fait ainsi dont",
    "hu": "a az és hogy nem is egy meg ez de van volt csak el már mint azt kell még ha vagy amely ki lesz fel minden",
    "it": "di e il la che in un a per è una sono non con si da come del le dei nel alla più i ma della al gli lo anche "
    "questo delle ha o se ci degli dalla essere l dell "
    "devono deve prima dopo ogni anche loro suo sua nella sono stata stato quando",
    "nl": "de het een van en in is dat op te zijn met voor niet aan er om hij als ook maar dan naar of uit bij nog wat "
    "heeft door over deze ze worden je wordt ik deze hebben kan",
    "no": "og i det er på som en til av at for med de han ikke den har et var jeg om fra men så kan vi ble eller skal "
    "ved seg hun sin ut "
    "må uten etter under måned minst gjennom selv denne dette ble",
    "pt": "de a o que e do da em um para com não uma os no se na por mais as dos como mas ao ele das seu sua ou quando "
    "muito nos já eu também pelo pela até isso são",
    "ro": "de și în a la cu care o din pe nu un mai că să este pentru ce prin sau sunt după au dar fost fi s ale lui",
    "ru": "и в не на что с он я как это по но к из у за от так его для она мы же бы о то все был или при только вы "
    "если когда уже до",
    "sv": "och i att det som en på är av för med den till inte har de ett om han var jag men sig från vi så kan när "
    "eller nu efter vid ska finns "
    "måste innan efter under månad minst genom själv denna detta utan",
    "ta": "ஒரு என்று மற்றும் இந்த இது என்ற கொண்டு என்பது பல ஆகும் அல்லது அவர் நான் உள்ள அந்த",
    "tr": "ve bir bu için de da ne ile çok daha gibi olarak o en olan var ama kadar değil sonra mi ben her ki ya "
    "veya olduğu",
}
COMMON = {"en": STOP_WORDS, **{language: frozenset(words.split()) for language, words in _COMMON.items()}}
#: Those of relatives without stems, which would be taken for one of the languages above.
_RELATIVES = {
    "bg": "и на е да се в за от с по не като че са през ще към",
    "ca": "de la i el a que en els per un les amb va una és del al ser dels",
    "cs": "a se v na je že s z do i to za ve by si po pro jako byla má roce",
    "fa": "و در به از که این را با است برای آن یک شد می",
    "hr": "i u je na se da za od su s koji a o što kao ima godine",
    "id": "yang dan di dengan untuk pada adalah ini itu tidak dari akan",
    "pl": "i w na z się nie do to jest że o jak ale za co od po tak ma dla został została roku",
    "sk": "a sa v na je že s z do i to za vo by si po pre ako bola má roku",
    "sl": "in je v na se da za od so s ki pa kot tudi ni po",
    "sr": "и у је на се да за од су са који",
    "uk": "і в на що не з у до та як це за від по було",
    "vi": "và của là có cho một các được trong không năm",
}
#: The languages that have each of these words. Single letters of ASCII are signs of too many.
_HAVING: dict[str, list[str]] = {}
for _language, _words in (*COMMON.items(), *((each, words.split()) for each, words in _RELATIVES.items())):
    for _word in _words:
        if len(_word) > 1 or not _word.isascii():
            _HAVING.setdefault(_word, []).append(_language)

#: Letters that only one of the languages has. So many of them count as its common words do.
_LETTERED = (
    "cs ěřů, de ß, es ñ¿¡, fa پچژگ, hu őű, pl ąęłńśźż, pt ãõ, ro ățș, ru ыэё, sr ђјљњћџ, tr ğış, uk іїєґ, "
    "vi ơưạảấầậếềệộớờợ"
)
_LETTERS: dict[str, str] = {each.split()[0]: each.split()[1] for each in _LETTERED.split(",")}
MOST_LETTERS = 3
#: What is between two words. Marks of some scripts, which belong to words, are no letters.
_NOT_LETTERS = re.compile(r"[\s\d_!-/:-@\[-`{-~«»…‘’“”„–—،؟。、]+")
_LETTERS_ONLY = {code: " " for code in range(128) if not chr(code).isalpha()}
#: Characters and words of a text that are looked at.
SAMPLE, MOST_WORDS = 2000, 200


def guess_language(text: str) -> str:
    """Return the code of the text's language, such as `de`, if it has stems and the text shows it; "" otherwise."""
    sample = text[:SAMPLE].lower()
    is_ascii = sample.isascii()
    # A regular expression would take three times as long.
    words = sample.translate(_LETTERS_ONLY).split() if is_ascii else [*filter(None, _NOT_LETTERS.split(sample))]
    words = words[:MOST_WORDS]
    votes = Counter(chain.from_iterable(filter(None, map(_HAVING.get, words))))
    for language, letters in _LETTERS.items():
        votes[language] += 0 if is_ascii else min(MOST_LETTERS, sum(map(sample.count, letters)))
    # English is in most indexes; another language must have more than it.
    (best, most), (_, second) = sorted(votes.items(), key=lambda vote: (-vote[1], vote[0] != "en"))[:2]
    if best in STEMMERS and (most > second or best == "en") and most and most * 12 >= len(words):
        return best
    return "en" if words and is_ascii and (votes["en"] == most or most < 2) else ""


@lru_cache(len(STEMMERS))
def _stemmer(language: str) -> tantivy.TextAnalyzer:
    name = STEMMERS[language].capitalize()
    return tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.raw()).filter(tantivy.Filter.stemmer(name)).build()


def stem(word: str, language: str) -> str:
    """Return the stem of a word in lower case; the word itself if the language has no stems."""
    if language not in STEMMERS or len(word) > LONGEST_STEMMED:
        return word
    return "".join(_stemmer(language).analyze(word)) or word


def language_of_query(words: Collection[str], languages: Collection[str]) -> str:
    """Return which of the languages has the most of these among its common words, the first of several."""
    return max(languages, key=lambda each: sum(word in COMMON.get(each, ()) for word in words), default="")


#: Words of questions in other languages than English.
_ASKING_ELSEWHERE = (
    "wie wer wo wann was warum wieso welche welcher welches welchen wem wen viele viel vielen lange oft hoch heißt "
    "qué quién quiénes cuál cuáles cuándo dónde cómo cuánto cuánta cuántos cuántas "
    "quel quelle quels quelles combien quand où comment qui quoi y t il "
    "quanto quanta quanti quante quando dove chi come quale quali cosa "
    "quem qual quais onde hoeveel wie waar wanneer welke hoe"
)
_INTERROGATIVES = frozenset(_ASKING_ELSEWHERE.split())
#: Common words of other languages that mean something in English, and those that only English has.
_MEANING = frozenset(("care", "come", "comment", "den", "die", "door", "hat", "man", "men", "met", "per", "son", "war"))
_ELSEWHERE = frozenset(word for word, having in _HAVING.items() if having != ["en"]) | _INTERROGATIVES
_ENGLISH = STOP_WORDS - _ELSEWHERE


def common_in(question: str) -> frozenset[str]:
    """Return the words of a question in another language than English that say nothing of what is asked."""
    language = guess_language(question)
    if language not in ("", "en"):
        return COMMON[language] | _INTERROGATIVES
    # One word such as "der" or "de" doesn't tell a language from its relatives.
    words = set(words_of(question))
    return frozenset() if words & _ENGLISH else frozenset(words & _ELSEWHERE - _MEANING - STOP_WORDS)
