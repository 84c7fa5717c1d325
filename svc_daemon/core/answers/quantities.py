"""Quantities: numbers with their units, however these are written, and which of them are the same amount."""

# ruff: noqa: RUF001 - letters of many scripts look alike

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

#: Units, and what else they are called. The first of each group replaces the others.
_UNITS = (
    "°c celsius, °f fahrenheit, ° degree degrees deg, % percent pct prozent procent, € eur euro euros евро, $ usd "
    "dollar dollars, £ gbp pound pounds, chf franken, zł zl pln złoty złote złotych, ₽ rub руб рубль рубля рублей, kr "
    "sek nok dkk kronor kroner, ₺ tl lira, kg kilogram kilograms kilo kilos, g gram grams, mg milligram milligrams, "
    "km kilometre kilometres kilometer kilometers, m metre metres meter meters, cm centimetre centimetres centimeter "
    "centimeters, mm millimetre millimetres millimeter millimeters, l litre litres liter liters, ml millilitre "
    "millilitres, s second seconds sec secs sekunden, min minute minutes mins minuten minutos minuti minut минут, h "
    "hour hours hr hrs stunde stunden heure heures hora horas uur uren godzin godziny час часа часов, day days tag "
    "tage tagen jour jours día días giorno giorni dag dagen dagar dias dni день дня дней, week weeks woche wochen "
    "semaine semaines semana semanas settimana settimane weken veckor tydzień tygodni tygodnie неделя недели недель, "
    "month months monat monate monaten mois mes meses mese mesi maand maanden månader miesiąc miesiące miesięcy месяц "
    "месяца месяцев, year years jahr jahre jahren ans année año años anno anni jaar jaren anos год года лет, kw "
    "kilowatt kilowatts, kwh, w watt watts, v volt volts, bar bars, kb, mb, gb, tb, km/h kph, mph, m2, m3, cent cents "
    "ct, page pages, inch inches, foot feet ft, mile miles, tonne tonnes, ¥ yen yuan rmb 円 元, ‰, night nights, "
    "quarter quarters, pm, am, hz, khz, mhz, rpm, psi, pa, kpa, hpa, amp amps ampere, ppm, hp horsepower, knot knots "
    "kn, m/s"
)
UNITS = {form: forms.split()[0] for forms in _UNITS.split(", ") for form in forms.split()}
#: Units that may stand before their amount.
CURRENCIES = frozenset(("$", "€", "£", "¥", "chf", "zł", "₽", "kr", "₺"))
#: Units that can be converted: the smallest of the same kind, and how many of it they have.
_MEASURES = {
    "s": ("s", 1),
    "min": ("s", 60),
    "h": ("s", 3600),
    "day": ("s", 86_400),
    "week": ("s", 604_800),
    "month": ("month", 1),
    "quarter": ("month", 3),
    "year": ("month", 12),
    "mm": ("mm", 1),
    "cm": ("mm", 10),
    "m": ("mm", 1000),
    "km": ("mm", 10**6),
    "mg": ("mg", 1),
    "g": ("mg", 1000),
    "kg": ("mg", 10**6),
    "ml": ("ml", 1),
    "l": ("ml", 1000),
}
#: The number of a paragraph or item, at its beginning.
_ITEM_NUMBER = re.compile(r"^\W{0,3}\d{1,3}(?:\.\d{1,3})*[.)]?(?=\s)")
#: Numbers that name a thing, a day or an hour.
_NAMING = re.compile(
    r"\b\d{4}-\d\d-\d\d\b|\b(?:1[5-9]|20)\d\d\b(?! [^\W\d_])|\b\d{1,2}:\d\d\b|\b[a-z]{1,5}-?\d[\w-]*\b|"
    r"\b(?:no|nr|number|id|ref|art|section|page|room|phone|tel|line|part|patient|code)\.?:? ?#?\d[\w-]*|"
    r"\b\d{1,2}(?:st|nd|rd|th)?\.? (?:of )?(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|"
    r"aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b(?: \d{4}\b)?",
    re.IGNORECASE,
)
#: Questions in other languages for money, for a number of something, and for any value.
_MONEY_ELSEWHERE = (
    r"\bkoste[nt]\b(?!.*\bträgt\b)|preis\b|\bprix\b|precio|\bcuesta|\bcoûte|\bquanto costa|\bkost (?:de|het|een)\b|"
    r"\bwat kost|prezzo|\bprijs\b|kosztuje|сколько стоит|цена|"
    r"wie hoch (?:ist|sind|war|wird) .*(?:miete|kaution|gebühr|beitrag|betrag|kosten|lohn|gehalt|zuschuss|taxe|steuer|"
    r"summe)|"
    r"(?:quel|combien)\b.*\b(?:loyer|montant|cotisation|caution)\b|いくら"
)
COUNTS_ELSEWHERE = (
    r"(?:wie viele?|wieviele?|combien d(?:e |['’])|cuánt[oa]s |quant[ie] |hoeveel |ile |сколько )\s*"
    r"(?!(?:kostet|kosten|kost|zahlt?|zahlen|muss|müssen|darf|ist|sind|moet|is|mag|kosztuje|стоит|passt|prozent)\b)(\w+)"
)
ASKS_FOR_VALUE_ELSEWHERE = (
    r"\W*(?:(?:ab|bis|seit|in|an|am|um|für|von|mit|aus|à|de|en|dans|pour|a|con|por|para|desde|hasta|di|da|per|entro|"
    r"voor|naar|tot|op|met) )?(?:we[rmn]|wann|wo|welche[mnrs]?|wie (?:viele?|lange?|oft|hoch|alt|weit|spät|schwer)|"
    r"wieviele?|was kostet|qui|quand|où|quel(?:le)?s?|combien|quién(?:es)?|cuándo|dónde|cuál(?:es)?|cuánt[oa]s?|qué|"
    r"chi|quando|dove|quale?|quali|quant[oaie]|wanneer|waar|welke?|hoe(?:veel| lang| vaak| hoog| laat))\b"
)
_MONEY = r"price|\bcost(?:s|ing)?\b|fee\b|how much money|pay|charge|expensive|fare\b"
_MONEY += (
    r"|toll\b|budget|\brent\b|deposit|\bfine\b|penalty|\btax|salary|wage"
    r"|\b(?:grand |invoice )?total of (?:the )?(?:invoice|bill|order|quote|offer)\b"
    f"|{_MONEY_ELSEWHERE}"
)
_DURATION = r"how long|duration|how soon|how quick|how often|interval|how late"
_DURATION += r"|wie lange|combien de temps|cuánto tiempo|quanto tempo|hoe lang"
#: Questions for an amount, what it is called, and the units of which an answer has one.
ASKED_UNITS = (
    (_MONEY, "price", "€ $ £ ¥ cent chf zł ₽ kr ₺"),
    (_DURATION, "duration", "s min h day week month quarter year night"),
    (r"how heavy|weigh|wie schwer|wiegt|gewicht|\bpèse|poids|\bpesa\b|\bpeso\b|weegt", "weight", "kg g mg tonne"),
    (r"how (?:high|tall|deep|wide|far|long)|height|distance", "height", "m cm mm km mile foot inch"),
    (r"how (?:hot|cold|warm)|temperatuu?r|température", "temperature", "° °c °f"),
    (r"pressure", "pressure", "bar psi pa kpa hpa"),
    (r"percent|per cent|what share|\bshare of\b|discount|interest rate|humidity|\bcontent\b", "percent", "% g mg ppm"),
    (r"\bprozent|pourcentage|porcentaje|percentuale|procent", "percent", "%"),
    (r"how fast|\bspeed\b|velocity", "speed", "km/h mph m/s knot rpm"),
    (r"(?:motor|engine|output|rated) power|wattage|power (?:rating|output|consumption)", "power", "w kw hp"),
    (r"\b(?:increase|decrease|rise|raise)d?\b", "increase", "% € $ £ ¥ cent"),
)
#: A complete figure: 1,000 isn't 1, and what 12,5 is depends on the language.
_FIGURE = r"(\d+(?:,\d{3})*(?:\.\d+)?)(?![.,:]?\d)"
_UNIT = r"[^\W\d_]{1,12}(?:[23]|/[a-z]{1,2})?|[°%][cf]?"
_AMOUNT = rf"[€£$]?{_FIGURE} ?({_UNIT})?"
#: Amounts in a range: "20 to 30 kg", "over 20 kg", "up to 20 kg" and "20 kg or more".
_BETWEEN = re.compile(
    rf"(?<![\w.,:-])(?:(over|above|more than|über) )?(?P<both>between |zwischen |entre )?[€£$]?{_FIGURE}"
    rf"(?: ?({_UNIT}))??(?: ?- ?| (?(both)(?:and|und|y|et)|(?:to|until|bis|à|a)) ){_AMOUNT}"
)
#: Not after a negation: "no more than 20 kg" is at most that.
_NOT = r"(?<!\bno )(?<!\bnot )(?<!\bnicht )"
_MORE = "(?:more|older|longer|heavier|higher|larger|greater) than|over|above|beyond"
_LESS = "(?:less|fewer|younger|shorter|lighter|smaller) than|under|below"
#: For amounts from one on, above one, up to one, and below one, what is before and after it.
_FROM, _ABOVE, _UP_TO, _BELOW = (
    re.compile(rf"(?:\b{_NOT}(?:{words})|[{signs}]) ?{_AMOUNT}|{after or '(?!)'}")
    for words, signs, after in (
        (
            rf"from|at least|ab|mindestens|(?:no|not) (?:{_LESS})|nicht unter",
            "≥",
            rf"(?<![\w.,:-]){_AMOUNT} (?:or|and) (?:more|over|older|above|longer|up|heavier|higher|larger)\b",
        ),
        (rf"{_MORE}|über|plus de", ">", ""),
        (
            rf"up to|at most|bis|höchstens|(?:no|not) (?:{_MORE})|nicht über",
            "≤",
            rf"(?<![\w.,:-]){_AMOUNT} (?:or|and) (?:less|fewer|under|younger|below|shorter|lighter|smaller)\b",
        ),
        (rf"{_LESS}|unter|moins de", "<", ""),
    )
)


#: What is before an amount that a question asks for more or less than: "over 10 kg".
ABOVE_IT, BELOW_IT = (
    re.compile(rf"(?:\b{_NOT}(?:{words})|{sign}) ?[€£$]?$")
    for words, sign in ((f"{_MORE}|über|plus de", ">"), (f"{_LESS}|unter|moins de", "<"))
)
#: The place in an order that a word says: "second" and "2nd" are 2.
_SPELLED = "first second third fourth fifth sixth seventh eighth ninth tenth".split()  # noqa: SIM905
ORDER = {form: at for at, word in enumerate(_SPELLED, 1) for form in (word, f"{at}th")}
ORDER |= {"1st": 1, "2nd": 2, "3rd": 3}


_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
NUMBER_WORDS = {word: at for at, word in enumerate(_SMALL.split())} | {
    word: 20 + 10 * at for at, word in enumerate(_TENS)
}
#: Numbers in German, French, Spanish, Italian, Dutch, Polish, Russian and Turkish, but for those that are names or
#: English words.
_FOREIGN_NUMBERS = (
    "2 zwei deux twee dwa dwie два две iki, 3 drei trois tres tre drie trzy три üç, 4 vier quatre cuatro quattro "
    "cztery четыре dört, 5 fünf cinq cinco cinque vijf pięć пять beş, 6 sechs seis zes sześć шесть altı, 7 sieben "
    "siete sette zeven siedem семь yedi, 8 acht huit ocho osiem восемь sekiz, 9 neun neuf nueve nove negen dziewięć "
    "девять dokuz, 10 zehn dix diez dieci tien dziesięć десять, 11 elf onze undici jedenaście одиннадцать, 12 zwölf "
    "douze doce dodici twaalf dwanaście двенадцать, 14 vierzehn quatorze catorce, 15 fünfzehn quinze quince quindici "
    "vijftien пятнадцать, 18 achtzehn, 20 zwanzig vingt veinte venti twintig dwadzieścia двадцать yirmi, 30 dreißig "
    "trente treinta trenta dertig trzydzieści тридцать otuz, 40 vierzig quarante cuarenta quaranta, 50 fünfzig "
    "cinquante cincuenta cinquanta vijftig, 60 sechzig soixante sesenta sessanta"
)
NUMBER_WORDS |= {word: int(number) for number, *words in map(str.split, _FOREIGN_NUMBERS.split(",")) for word in words}

#: Figures as some languages write them: 1.234,50, 1 234,50, 1'234 and 12,5; 1.234 is one only as a sum of money, and
#: 35 000 with its unit or three noughts.
_SPACE = "[ \N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}\N{THIN SPACE}]"
_MONEY = rf"{_SPACE}?(?:[€₽₺]|(?:eur|euros?|евро|zł|pln|chf|tl|руб\w*|kr|kč|ft|lei)\b)"
_ELSEWHERE = re.compile(
    rf"(?<![\w.,/:])(?<![^\W\d_]-)(?<!\d-\d\d-)(?:\d{{1,3}}(?:(?:[.'’]|{_SPACE})\d{{3}})+|\d+),(?:\d\d?|\d{{4,}})(?![\w.,/:]?\d|,\S)"
    r"|(?<![\w.,/])0,\d{3}(?![.,]?\d|,\S)|(?<![\w.,/])\d{1,3}(?:\.\d{3}){2}(?![.,]?\d)"
    rf"|(?<![\w.,/])\d{{1,3}}(?:['’]\d{{3}})+(?!\d)|(?<![\w.,/])\d{{1,3}}(?:\.\d{{3}}|{_SPACE}\d{{3}})(?={_MONEY})"
    rf"|(?<=[€₽₺])\d{{1,3}}\.\d{{3}}(?![.,]?\d)|(?<![\w.,/])\d{{1,3}}(?:{_SPACE}\d{{3}})*{_SPACE}000(?![.,]?\d)"
    rf"|(?<![\w.,/])\d{{1,3}}(?:[\N{{NO-BREAK SPACE}}\N{{NARROW NO-BREAK SPACE}}]\d{{3}})+(?![.,]?\d)",
    re.IGNORECASE,
)
#: What else stands in a figure, and what English has there.
_THOUSANDS = re.compile(rf"(?:[.'’]|{_SPACE})(?=\d{{3}})")
_CLOCK = re.compile(r"(?<![\w.,])(\d\d?)\.(\d\d)(?=(?: ?[-–] ?\d\d?[.:]\d\d)? ?(?:uhr|h|uur)\b)", re.IGNORECASE)
_LISTED = re.compile(r"[\d,]*")


def in_english(text: str) -> str:
    """Return a text of the same length with its figures and times as in English: 1,234.50 for 1.234,50."""
    if "," not in text and "." not in text and not _ELSEWHERE.search(text):
        return text
    # Numbers with commas and nothing else may be cells.
    if not _LISTED.fullmatch(text):
        text = _ELSEWHERE.sub(lambda each: _THOUSANDS.sub("\0", each[0]).replace(",", ".").replace("\0", ","), text)
    return _CLOCK.sub(r"\1:\2", text)


class Quantity(NamedTuple):
    """A number with its sign and the unit beside it, if any."""

    value: Decimal
    unit: str = ""

    def is_in(self, found: "frozenset[Quantity]") -> bool:
        """Return whether a text with these quantities has this one: of the same unit, or one of both without."""
        return any(each.value == self.value and _is_one_unit(each.unit, self.unit) for each in found)

    def equals(self, other: "Quantity") -> bool:
        """Return whether both are the same amount: two weeks and 14 days, 3 pm and 15:00."""
        if not self.unit or not other.unit:
            return self.value == other.value
        (unit, factor), (same, by) = (_MEASURES.get(each.unit, (each.unit, 1)) for each in (self, other))
        return _is_one_unit(unit, same) and self.value * factor == other.value * by


def _is_one_unit(one: str, other: str) -> bool:
    return one == other or not one or not other or (one[0] == other[0] == "°" and "°" in (one, other))


class Bounds(NamedTuple):
    """A range of amounts of a unit; without an end, it is None."""

    low: Decimal | None
    high: Decimal | None
    unit: str
    #: An end that is no part of it: 20 kg of "over 20 kg".
    without: Decimal | None = None

    def has(self, quantity: Quantity) -> bool:
        """Return whether an amount of the same unit is in it."""
        if quantity.value == self.without:
            return False
        return (self.low is None or self.low <= quantity.value) and (self.high is None or quantity.value <= self.high)

    def goes_on(self, quantity: Quantity, side: int) -> bool:
        """Return whether more than an amount of the same unit is in it, or less if `side` is negative."""
        low, high = self.low, self.high
        if side > 0:
            return (low is None or low <= quantity.value) and (high is None or quantity.value < high)
        return (low is None or low < quantity.value) and (high is None or quantity.value <= high)


def bounds_in(text: str) -> Iterator[Bounds]:
    """Yield the ranges of amounts that a text in lower case has."""
    for match in _BETWEEN.finditer(text):
        low, high, unit = _decimal(match[3]), _decimal(match[5]), UNITS.get(match[6] or "", "")
        # "500 g to 2 kg" and 2024-05 are none.
        if low <= high and UNITS.get(match[4] or "", unit) == unit:
            yield Bounds(low, high, unit, low if match[1] else None)
    rest = _BETWEEN.sub(" ", text)
    for pattern in (_FROM, _ABOVE, _UP_TO, _BELOW):
        for match in pattern.finditer(rest):
            found = [*filter(None, match.groups()), ""]
            value, unit = _decimal(found[0]), UNITS.get(found[1], "")
            without = value if pattern in (_ABOVE, _BELOW) else None
            is_least = pattern in (_FROM, _ABOVE)
            yield Bounds(value, None, unit, without) if is_least else Bounds(None, value, unit, without)


def _decimal(figure: str) -> Decimal:
    return Decimal(figure.replace(",", ""))


def without_names(text: str, *, is_plain: bool) -> str:
    """Return a text without the numbers that name something: that of a paragraph, and of a year, day, hour or code.

    Unless a plain amount is asked for, such as a price, only the paragraph's is left out.
    """
    text = _ITEM_NUMBER.sub(" ", text)
    return _NAMING.sub(" ", text) if is_plain else text
