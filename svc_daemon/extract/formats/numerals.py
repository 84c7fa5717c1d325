"""Numbers as documents spell them in front of paragraphs: `IV`, `b`, `3rd`, `十二`."""

from collections.abc import Callable

_ROMAN = (
    *((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x")),
    *((9, "ix"), (5, "v"), (4, "iv"), (1, "i")),
)
_ONES = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS = ["zero", "ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}
_HAN = "〇一二三四五六七八九"
_RUSSIAN = "абвгдежзиклмнопрстуфхцчшщыэюя"
_LATIN = "abcdefghijklmnopqrstuvwxyz"


def spell_number(number: int, spelling: str) -> str:
    """Return a number in a spelling that Word has a name for, such as `lowerRoman`; in digits if it is unknown."""
    spell = _SPELLINGS.get(spelling)
    return str(number) if spell is None or not 0 < number < 10_000 else spell(number)


def _roman(number: int) -> str:
    pieces = []
    for value, letters in _ROMAN:
        count, number = divmod(number, value)
        pieces.append(letters * count)
    return "".join(pieces)


def _repeated(letters: str) -> Callable[[int], str]:
    """After the last letter, the first is doubled: `z`, `aa`, `bb`."""
    return lambda number: letters[(number - 1) % len(letters)] * ((number - 1) // len(letters) + 1)


def _words(number: int) -> str:
    if number < 20:
        return _ONES[number]
    for size, name in ((1000, "thousand"), (100, "hundred")):
        if number >= size:
            rest = number % size
            return f"{_words(number // size)} {name}" + (f" {_words(rest)}" if rest else "")
    return _TENS[number // 10] + (f"-{_ONES[number % 10]}" if number % 10 else "")


def _ordinal_words(number: int) -> str:
    words = _words(number)
    last = words.replace("-", " ").split()[-1]
    ordinal = _ORDINALS.get(last) or (f"{last[:-1]}ieth" if last.endswith("y") else f"{last}th")
    return words.removesuffix(last) + ordinal


def ordinal(number: int) -> str:
    ending = "th" if 10 < number % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _han(number: int) -> str:
    """Count as in Chinese and Japanese: 12 is `十二`."""
    pieces: list[str] = []
    for size, unit in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit, number = divmod(number, size)
        if digit:
            pieces.append(("" if digit == 1 and unit == "十" and not pieces else _HAN[digit]) + unit)
        elif pieces and number and not pieces[-1].endswith("〇"):
            pieces.append("〇")
    return "".join(pieces)


def _circled(number: int) -> str:
    return chr(0x2460 + number - 1) if number <= 20 else str(number)


_SPELLINGS: dict[str, Callable[[int], str]] = {
    "lowerRoman": _roman,
    "upperRoman": lambda number: _roman(number).upper(),
    "lowerLetter": _repeated(_LATIN),
    "upperLetter": _repeated(_LATIN.upper()),
    "ordinal": ordinal,
    "cardinalText": lambda number: _words(number).capitalize(),
    "ordinalText": lambda number: _ordinal_words(number).capitalize(),
    "decimalZero": lambda number: f"{number:02}",
    "decimalFullWidth": lambda number: str(number).translate({ord("0") + digit: 0xFF10 + digit for digit in range(10)}),
    "decimalEnclosedCircle": _circled,
    "decimalEnclosedCircleChinese": _circled,
    "decimalEnclosedParen": lambda number: f"({number})",
    "decimalEnclosedFullstop": lambda number: f"{number}.",
    "numberInDash": lambda number: f"- {number} -",
    "russianLower": _repeated(_RUSSIAN),
    "russianUpper": _repeated(_RUSSIAN.upper()),
    "ideographDigital": lambda number: "".join(_HAN[int(digit)] for digit in str(number)),
    **dict.fromkeys(("chineseCounting", "chineseCountingThousand", "japaneseCounting", "taiwaneseCounting"), _han),
    **dict.fromkeys(("taiwaneseCountingThousand", "ideographTraditionalCounting", "koreanCounting"), _han),
    "ideographTraditional": _repeated("甲乙丙丁戊己庚辛壬癸"),
    "ideographZodiac": _repeated("子丑寅卯辰巳午未申酉戌亥"),
    "aiueoFullWidth": _repeated(
        "アイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワヲン"
    ),
    "aiueo": _repeated("アイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワヲン"),
    "irohaFullWidth": _repeated(
        "イロハニホヘトチリヌルヲワカヨタレソツネナラムウヰノオクヤマケフコエテアサキユメミシヱヒモセス"
    ),
    "iroha": _repeated(
        "イロハニホヘトチリヌルヲワカヨタレソツネナラムウヰノオクヤマケフコエテアサキユメミシヱヒモセス"
    ),
    "ganada": _repeated("가나다라마바사아자차카타파하"),
    "chosung": _repeated("ㄱㄴㄷㄹㅁㅂㅅㅇㅈㅊㅋㅌㅍㅎ"),
    "hebrew2": _repeated("אבגדהוזחטיכלמנסעפצקרשת"),
    "hebrew1": _repeated("אבגדהוזחטיכלמנסעפצקרשת"),
    "arabicAbjad": _repeated("أبجدهوزحطيكلمنسعفصقرشتثخذضظغ"),
    "arabicAlpha": _repeated("أبتثجحخدذرزسشصضطظعغفقكلمنهوي"),
    "chicago": _repeated("*†‡§"),
}
