"""Languages: stems of words, the words that are in almost every text, and a guess of a text's language."""

# ruff: noqa: RUF001 - letters of many scripts look alike

import re
from collections import Counter
from collections.abc import Collection, Iterator
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


#: Words with which questions ask: what shows a question, and behind the bar words that say nothing in one.
_ASKING = {
    "ar": "متى أين كيف كم لماذا ماذا ما هل أي أية",
    "bg": "кога къде как колко защо какво кой коя кое кои",
    "ca": "quan on com quant quanta quants quantes qui què quin quina quins quines perquè",
    "cs": "kdy kde kam jak kolik proč co kdo koho komu jaký jaká jaké jakou který která které kterou | může smí musí "
    "stojí",
    "da": "hvornår hvor hvordan hvorfor hvad hvem hvilken hvilket hvilke | mange meget længe kan må skal koster",
    "de": "wie wer wo wann was warum wieso weshalb wofür womit wozu woher wohin wovon welche welcher welches welchen "
    "welchem wem wen wessen wieviel wieviele darf dürfen kann können muss muß müssen soll sollen gibt gilt | viele "
    "viel vielen lange lang oft hoch groß heißt heißen gelten beträgt betragen lautet dauert kostet liegt findet "
    "statt möchte hat habe werden wurden ist sind ab fuer koennen duerfen muessen",
    "el": "πότε πού πως πώς πόσο πόση πόσοι πόσες πόσα γιατί τι ποιος ποια ποιο ποιοι ποιες ποιον | μπορώ μπορεί "
    "πρέπει κοστίζει",
    "es": "qué quién quiénes cuál cuáles cuándo dónde adónde cómo cuánto cuánta cuántos cuántas quien cual cuales "
    "cuando donde como cuanto cuanta cuantos cuantas | cuesta cuestan vale hay puede puedo pueden se debe deben hace "
    "tiene dura es está son fue",
    "fi": "milloin koska missä mistä mihin miten kuinka miksi mitä mikä mitkä kuka ketkä kenen paljonko montako "
    "kauanko voiko saako onko pitääkö | paljon kauan maksaa",
    "fr": "quel quelle quels quelles combien quand où comment pourquoi qui quoi lequel laquelle faut | coûte coûtent "
    "coute coutent peut peuvent doit doivent il elle ils elles on y t a ont est sont était",
    "he": "מתי איפה היכן איך כמה למה מדוע מה מי האם איזה איזו אילו",
    "hr": "kada gdje kako koliko zašto što tko koji koja koje | može smije",
    "hu": "mikor hol hová hogyan mennyi hány miért mi mit ki kit milyen melyik meddig mennyibe | kerül lehet szabad",
    "id": "kapan mana bagaimana berapa mengapa kenapa apa apakah siapa",
    "it": "quanto quanta quanti quante quando dove chi come quale quali qual cosa perché | costa costano può possono "
    "deve si è sono",
    "nl": "hoe wie wat waar wanneer waarom welke welk hoeveel hoelang | veel vaak lang hoog groot kost kosten mag "
    "mogen moet moeten kan kunnen wordt worden duurt is zijn",
    "no": "når hvor hvordan hvorfor hva hvem hvilken hvilket hvilke | mange mye lenge kan må skal koster",
    "pl": "kiedy gdzie skąd dokąd jak ile dlaczego czemu co kto kogo komu czyj jaki jaka jakie jakiej jakim który "
    "która które którego której czy | długo często można wolno trzeba kosztuje jest są wynosi",
    "pt": "quando onde como quanto quanta quantos quantas quem qual quais porque porquê | custa custam pode podem deve",
    "ro": "când unde cum cât câtă câți câte ce cine care | costă poate trebuie",
    "ru": "когда где куда откуда как сколько почему зачем что кто кого кому чей какой какая какое какие каков какова "
    "каково каковы каким какую который которая ли | можно нужно стоит составляет",
    "sk": "kedy kde kam ako koľko prečo čo kto koho aký aká aké ktorý ktorá ktoré | môže smie stojí",
    "sl": "kdaj kje kam kako koliko zakaj kaj kdo kateri katera katero",
    "sr": "када где како колико зашто шта ко који која које",
    "sv": "när var vart hur varför vad vem vilken vilket vilka vems | många mycket länge får kan ska måste kostar",
    "tr": "nerede nereye nasıl kaç niçin neden niye ne nedir kim kimdir kimin hangi mı mi mu mü midir mıdır kaça | "
    "zaman kadar var",
    "uk": "коли де куди звідки як скільки чому навіщо що хто кого кому який яка яке які чи | можна треба коштує",
    "vi": "nào đâu bao nhiêu sao gì ai mấy | khi thế",
}
#: The same where words aren't set apart by spaces, with particles around them.
_ASKING_UNSPACED = re.compile(
    r"[はがをにでのとも]?(?:いつ(?:まで|から)?|どこ|だれ|誰|何(?:時|日|人|年|月|円|個|歳)?|なに|なん|いくら|いくつ|どの(?:くらい)?|どれ|"
    r"どう|なぜ|どんな|どちら)(?:まで|から|に|で(?!す|しょ)|が|を)?(?:です|でしょう|ます)?か?|(?:です|でしょう|ます|ません)か|"
    r"(?<=[^\u3040-\u309f])[はがをにでのとも](?=[^\u3040-\u309f])|"
    r"[是有]?(?:多少|多久|多长时间|多長時間|多长|多長|什么时候|什麼時候|什么|什麼|几|幾|哪里|哪裡|哪儿|哪个|哪個|谁|誰|怎么|怎麼|怎样|"
    r"怎樣|如何|为什么|為什麼|是否|可以|能否|需要)|[吗嗎呢]|"
    r"언제|어디|누구|누가|무엇|얼마|몇|왜|어떻게|입니까|인가요|까지"
)


def without_asking(word: str) -> list[str]:
    """Return the parts of a text without spaces that do more than ask."""
    return [word] if word.isascii() else [part for part in _ASKING_UNSPACED.split(word) if part]


def asking_in(characters: str) -> Iterator[tuple[int, int]]:
    """Yield where words that only ask stand in a text without spaces."""
    return (match.span() for match in _ASKING_UNSPACED.finditer(characters))


#: For each language its common words and those that ask, then those that say nothing in a question.
_SAYING_NOTHING: dict[str, tuple[frozenset[str], frozenset[str], frozenset[str]]] = {}
for _language in dict.fromkeys((*COMMON, *_RELATIVES, *_ASKING)):
    _asking, _, _light = _ASKING.get(_language, "").partition("|")
    _plain = COMMON.get(_language) or frozenset(_RELATIVES.get(_language, "").split())
    _SAYING_NOTHING[_language] = (_plain, frozenset(_asking.split()), frozenset(_light.split()))
_UNSTEMMED = tuple(language for language in _SAYING_NOTHING if language not in STEMMERS)


def common_of_query(words: Collection[str], languages: Collection[str]) -> frozenset[str]:
    """Return the words that say nothing in the likeliest language of a query: one of these, or one without stems."""
    known = [each for each in dict.fromkeys((*languages, "en", *_UNSTEMMED)) if each in _SAYING_NOTHING]
    return _saying_nothing(max(known, key=lambda each: _count_common(words, each)), words)


def _count_common(words: Collection[str], language: str) -> int:
    known = _saying_nothing(language, words)
    return sum(word in known for word in words)


def _saying_nothing(language: str, words: Collection[str]) -> frozenset[str]:
    plain, asking, light = _SAYING_NOTHING[language]
    return plain | asking if asking.isdisjoint(words) else plain | asking | light


#: Common words of other languages that mean something in English.
_MEANING = frozenset(("care", "come", "comment", "den", "die", "door", "hat", "man", "men", "met", "per", "son", "war"))


def language_of(question: str, text: str) -> str:
    """Return the likeliest language of a question about a text, if it has stems; "" if it is English."""
    words = set(words_of(question))
    counts = {language: _count_common(words, language) for language in STEMMERS}
    most = max(counts.values())
    if most and counts["en"] == most:
        return ""
    guess = guess_language(text)
    likeliest = guess if counts.get(guess) == most else max(counts, key=counts.__getitem__)
    return likeliest if likeliest != "en" else ""


@lru_cache(maxsize=64)
def common_in(question: str) -> frozenset[str]:
    """Return the words of a question in another language than English that say nothing of what is asked."""
    words = set(words_of(question))
    counts = {language: _count_common(words, language) for language in _SAYING_NOTHING}
    most = max(counts.values())
    if counts["en"] == most:
        return frozenset()
    common = frozenset[str]().union(*(_saying_nothing(each, words) for each in counts if counts[each] == most))
    # One word such as "der" or "de" doesn't tell a language from its relatives.
    return (common if most > 1 else common - _MEANING - STOP_WORDS) & words
