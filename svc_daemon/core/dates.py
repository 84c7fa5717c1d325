"""Dates: the days of the week and the months that a text names, alone, with a day, or in a range.

Both have their English names, whatever the language.
"""

# ruff: noqa: RUF001 - letters of many scripts look alike

import re
from collections.abc import Iterator, Sequence

MONTHS = "january february march april may june july august september october november december".split()  # noqa: SIM905
DAY_NAMES = "monday tuesday wednesday thursday friday saturday sunday".split()  # noqa: SIM905
#: The months in German, French, Spanish, Italian, Dutch, Portuguese, the Nordic languages, Polish, Russian, Greek,
#: Turkish, Arabic and Hebrew.
_FOREIGN_MONTHS = (
    "januar jänner janvier enero gennaio januari janeiro styczeń stycznia январь января ιανουαρίου ocak يناير ינואר "
    "בינואר, februar février febrero febbraio februari fevereiro luty lutego февраль февраля φεβρουαρίου şubat فبراير "
    "פברואר בפברואר, märz mars marzo maart março marts marzec marca март марта μαρτίου mart مارس מרץ במרץ, avril "
    "abril aprile kwiecień kwietnia апрель апреля απριλίου nisan أبريل אפריל באפריל, mai mayo maggio mei maio maj "
    "maja май мая μαΐου mayıs مايو מאי במאי, juni juin junio giugno junho czerwiec czerwca июнь июня ιουνίου haziran "
    "يونيو יוני ביוני, juli juillet julio luglio julho lipiec lipca июль июля ιουλίου temmuz يوليو יולי ביולי, août "
    "agosto augustus augusti sierpień sierpnia август августа αυγούστου ağustos أغسطس אוגוסט באוגוסט, septembre "
    "septiembre settembre setembro wrzesień września сентябрь сентября σεπτεμβρίου eylül سبتمبر ספטמבר בספטמבר, "
    "oktober octobre octubre ottobre outubro październik października октябрь октября οκτωβρίου ekim أكتوبر אוקטובר "
    "באוקטובר, novembre noviembre novembro listopad listopada ноябрь ноября νοεμβρίου kasım نوفمبر נובמבר בנובמבר, "
    "dezember décembre diciembre dicembre dezembro grudzień grudnia декабрь декабря δεκεμβρίου aralık ديسمبر דצמבר "
    "בדצמבר"
)
#: The days of the week in some of these languages.
_FOREIGN_DAYS = (
    "montag montags montagen lundi lundis lunes lunedì lunedi maandag mandag måndag poniedziałek poniedziałku "
    "понедельник понедельника понедельникам pazartesi δευτέρα, dienstag dienstags dienstagen mardi mardis martes "
    "martedì martedi dinsdag tirsdag tisdag wtorek wtorku вторник вторника вторникам salı τρίτη, mittwoch mittwochs "
    "mittwochen mercredi mercredis miércoles miercoles mercoledì mercoledi woensdag onsdag środa środę środy среда "
    "среду среды средам çarşamba τετάρτη, donnerstag donnerstags donnerstagen jeudi jeudis jueves giovedì giovedi "
    "donderdag torsdag czwartek czwartku четверг четверга четвергам perşembe πέμπτη, freitag freitags freitagen "
    "vendredi vendredis viernes venerdì venerdi vrijdag fredag piątek piątku пятница пятницу пятницы пятницам cuma "
    "παρασκευή, samstag samstags samstagen sonnabend sonnabends sonnabenden samedi samedis sábado sábados sabado "
    "sabato zaterdag lørdag lördag sobota sobotę soboty суббота субботу субботы субботам cumartesi σάββατο, sonntag "
    "sonntags sonntagen dimanche dimanches domingo domingos domenica zondag søndag söndag niedziela niedzielę "
    "niedzieli воскресенье воскресенья воскресеньям κυριακή"
)
_SHORT_MONTHS = {month[:3]: month for month in MONTHS} | {"sept": "september"}
_SHORT_DAYS = {day[:3]: day for day in DAY_NAMES}
#: The number of each month by its names and short forms.
MONTH_NUMBERS = {form: MONTHS.index(month) + 1 for form, month in _SHORT_MONTHS.items()}
MONTH_NUMBERS |= {month: at for at, month in enumerate(MONTHS, 1)}
MONTH_NUMBERS |= {form: at for at, forms in enumerate(_FOREIGN_MONTHS.split(","), 1) for form in forms.split()}
#: The English name of each day of the week and month by those in other languages.
FOREIGN_NAMES = {
    form: name
    for names, lists in ((DAY_NAMES, _FOREIGN_DAYS), (MONTHS, _FOREIGN_MONTHS))
    for name, forms in zip(names, lists.split(","), strict=True)
    for form in forms.split()
}
ISO_DATE = re.compile(r"(\d{4})[-年](\d{1,2})[-月](\d{1,2})日?|(\d{1,2})\.(\d{1,2})\.(\d{4})")
#: A date as in "am 24.09. um 19:30", without its year.
DOTTED_DATE = re.compile(r"(?<![\d.,])(\d{1,2})\.(\d{1,2})\.(?![\d.])")
#: What a text has that names a day of the week or a month; nothing else can be one.
_DAY_BEGUN = re.compile(
    "|".join(sorted({name[:3] for name in (*DAY_NAMES, *_FOREIGN_DAYS.replace(",", "").split())})), re.IGNORECASE
)
MONTH_BEGUN = re.compile("|".join(sorted({name[:3] for name in MONTH_NUMBERS})), re.IGNORECASE)
_TO = (
    r"(?: ?[-–] ?| to | through | until | till | bis | au | à | al | a | tot en met | t/m | tot | do | по | til | till "
    r"(?:och med )?| έως )"
)
_DAY = "|".join((*(f"{day}s?|{day[:3]}" for day in DAY_NAMES), *_FOREIGN_DAYS.replace(",", "").split()))
_DAY_RANGE = re.compile(rf"\b({_DAY}){_TO}({_DAY})\b", re.IGNORECASE)
_MONTH = "|".join((*(f"{month}|{month[:3]}" for month in MONTHS), *_FOREIGN_MONTHS.replace(",", "").split()))
_NUMBER = r"\d{1,2}(?:st|nd|rd|th|er|\.)?"
_MONTH_RANGE = re.compile(rf"\b({_MONTH})(?: {_NUMBER})?{_TO}(?:{_NUMBER} )?({_MONTH})\b", re.IGNORECASE)
#: A month as in the name of a file, `2024-04`.
_YEAR_MONTH = re.compile(r"(?<!\d)(?<!\d-)(?:19|20)\d\d[-_](0[1-9]|1[0-2])(?![\w-])")

#: A date of numbers, with the day or the month first.
_NUMBERED = re.compile(r"(0?[1-9]|[12]\d|3[01])([./-])(0?[1-9]|[12]\d|3[01])\2(\d{4}|(?:(?<=\d\d\.\d\d\.)|(?<=/))\d\d)")
#: A year of two digits from here on is of the last century.
_LAST_CENTURY = 70
_YEAR = re.compile(r"[12]\d(?<!\d..)\d\d(?!\d)")
#: A day and a month before a year, or these two the other way round.
_DAY_MONTH = re.compile(
    r"(?<!\w)(\d{1,2})(?:st|nd|rd|th|er|\.|º)?[\s/-](?:of\s|de\s)?([^\W\d_]{3,12})\.?,?(?:\sdel?)?[\s/-]\Z",
    re.IGNORECASE,
)
_MONTH_DAY = re.compile(r"(?<!\w)([^\W\d_]{3,12})\.?\s(\d{1,2})(?:st|nd|rd|th)?,?\s\Z", re.IGNORECASE)
#: As Czechs and Germans write it, `12. 5. 2024`.
_APART = re.compile(r"(?<![\w.,])(\d{1,2})\.\s?(\d{1,2})\.\s\Z")
_WIDE = re.compile(r"年(\d{1,2})月(\d{1,2})日")
#: As sheets and tickets have it, `14-Mar-24` and `05SEP2021`.
_CLOSE = re.compile(r"(0?[1-9]|[12]\d|3[01])(?:-([a-z]{3,4})-|([a-z]{3,4}))((?:19|20)?\d\d)", re.IGNORECASE)
#: The longest beginning of a date, before its year, and the longest end of that.
_LONGEST, _LONGEST_END = 30, 16
_WORD_BEFORE = re.compile(r"[^\W_]+")
_MAY_PRECEDE_YEAR = MONTH_NUMBERS.keys() | {"de", "del"}

#: Questions for a day or a time of day in other languages, and what such a time looks like, in lower case.
ASKS_WHEN = (
    r"^\W*(?:\w+\W+)??(?:wann|quand|cuándo|cuando|quando|wanneer|kiedy|kdy|когда|πότε|när|hvornår|når|متى|מתי)\b|"
    r"\bne zaman\b|um wie ?viel uhr|quelle heure|qué hora|che ora|hoe laat|której godzin|во сколько|"
    r"(?:welche[mnrs]?|welke|quel|quelle|qué|quale?|che) (?:tage?n?|datum|jahr|monat|dag|jaar|jour|date|année|mois|día|"
    r"fecha|año|mes|giorno|data|anno|mese)\b|いつ|什么时候|什麼時候"
)
_NAMED = "|".join(form for form in FOREIGN_NAMES if form not in {"mars", "mart", "cuma", "luty", "mai", "mei", "maj"})
TIME_ELSEWHERE = (
    rf"|\b(?:{_NAMED})\b|\b\d\d?\.? (?:de )?(?:mars|mai|mei|maj|mart)\b|\b\d\d? ?h(?: ?\d\d)?\b|\b\d\d? uhr\b|"
    r"\b\d\d?\.\d\d?\.(?!\d{3}\b)|\d月|\d[時时点點]"
)


def name_of(word: str) -> str:
    """Return the whole English name of a day of the week or month in lower case; any other word as it is."""
    return _SHORT_DAYS.get(word) or _SHORT_MONTHS.get(word) or FOREIGN_NAMES.get(word, word)


def written_in(text: str) -> Iterator[tuple[int, int]]:
    """Yield the month and day of the dates of a text that are numbers only."""
    for match in ISO_DATE.finditer(text):
        month, day = (match[2], match[3]) if match[1] else (match[5], match[4])
        yield int(month), int(day)
    for match in DOTTED_DATE.finditer(text):
        if int(match[2]) <= len(MONTHS) and int(match[1]) <= 31:
            yield int(match[2]), int(match[1])


def months_of(text: str) -> Iterator[str]:
    """Yield the months of a text that are numbers, such as `2024-04`."""
    return (MONTHS[int(month) - 1] for month in _YEAR_MONTH.findall(text))


def ranged_in(text: str) -> Iterator[tuple[int, Sequence[str]]]:
    """Yield where a range such as Mon-Fri or "April to October" begins in a text, and the names within it."""
    for begun, ranges, names in ((_DAY_BEGUN, _DAY_RANGE, DAY_NAMES), (MONTH_BEGUN, _MONTH_RANGE, MONTHS)):
        for match in ranges.finditer(text) if begun.search(text) else ():
            first, last = (
                names.index(FOREIGN_NAMES.get(end.lower()) or name_of(end[:3].lower())) for end in match.groups()
            )
            within = names[first : last + 1] if first <= last else names[first:] + names[: last + 1]
            is_week = names is DAY_NAMES and len(within) == 5 and not first
            yield match.start(), [*within, *(["weekday"] if is_week else [])]


def numbered(written: str) -> Iterator[str]:
    """Yield the dates that may be meant by one piece of text, such as 14.3.24 or 14-Mar-24, as 2024-03-14."""
    if (date := _CLOSE.fullmatch(written)) and (month := MONTH_NUMBERS.get((date[2] or date[3]).lower())):
        yield f"{_whole(date[4])}-{month:02}-{date[1]:0>2}"
    elif date := _NUMBERED.fullmatch(written):
        one, sign, other, year = date.groups()
        year = _whole(year)
        if int(other) <= len(MONTHS):
            yield f"{year}-{other:0>2}-{one:0>2}"
        if sign in "/-" and int(one) <= len(MONTHS) and one != other:
            yield f"{year}-{one:0>2}-{other:0>2}"


def _whole(year: str) -> str:
    return year if len(year) > 2 else f"{19 if int(year) >= _LAST_CENTURY else 20}{year}"


def worded_in(text: str, start: int, end: int) -> Iterator[tuple[int, int, str]]:
    """Yield where dates of a text are whose month is a word or that have blanks, and each as 2024-03-14.

    Their years are between `start` and `end`.
    """
    for year in _YEAR.finditer(text, start, end):
        first, last = year.span()
        begun = text[max(0, first - _LONGEST) : first]
        *_, before = ["", *_WORD_BEFORE.findall(begun[-_LONGEST_END:])]
        # Most years follow no month.
        may_be_date = before[:1].isdigit() or before.lower() in _MAY_PRECEDE_YEAR
        match = _DAY_MONTH.search(begun) or _MONTH_DAY.search(begun) or _APART.search(begun) if may_be_date else None
        if match:
            day, word = sorted(match.groups(), key=str.isalpha)
            month = int(word) if word.isdecimal() else MONTH_NUMBERS.get(word.lower(), 0)
            first -= len(begun) - match.start()
        elif match := _WIDE.match(text, last):
            day, month, last = match[2], int(match[1]), match.end()
        else:
            continue
        if 1 <= int(day) <= 31 and 1 <= month <= len(MONTHS):
            yield first, last, f"{year[0]}-{month:02}-{day:0>2}"
