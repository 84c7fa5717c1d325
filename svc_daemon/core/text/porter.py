"""Porter's stemmer for English, as in SQLite's FTS5, so that all engines match the same forms of a word.

The algorithm is that of M. F. Porter, An algorithm for suffix stripping, 1980. Each step has a list of endings. It
replaces the longest of these endings that the word has, unless the rest of the word would be too short.
"""

import re

#: Words that are shorter or longer than this are not changed.
SHORTEST, LONGEST = 3, 64
#: Endings that the second step replaces, if the stem before them has a vowel followed by a consonant.
_SECOND = {
    "ational": "ate",
    "tional": "tion",
    "enci": "ence",
    "anci": "ance",
    "izer": "ize",
    "logi": "log",
    "bli": "ble",
    "alli": "al",
    "entli": "ent",
    "eli": "e",
    "ousli": "ous",
    "ization": "ize",
    "ation": "ate",
    "ator": "ate",
    "alism": "al",
    "iveness": "ive",
    "fulness": "ful",
    "ousness": "ous",
    "aliti": "al",
    "iviti": "ive",
    "biliti": "ble",
}
#: Endings that the third step replaces, if the stem before them has a vowel followed by a consonant.
_THIRD = {"icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": ""}
#: Endings that the fourth step removes, if the stem before them has vowels followed by consonants at least twice.
_FOURTH = {
    **dict.fromkeys(("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou"), ""),
    **dict.fromkeys(("ism", "ate", "iti", "ous", "ive", "ize"), ""),
}


#: For each step: a pattern that finds the longest ending, the replacements of the endings, and a number. In the stem
#: before the ending, a vowel must be followed by a consonant more than this number of times.
_STEPS = tuple(
    (re.compile(f"(?<=.)(?:{'|'.join(sorted(endings, key=len, reverse=True))})$", re.DOTALL), endings, least)
    for endings, least in ((_SECOND, 0), (_THIRD, 0), (_FOURTH, 1))
)
_DOUBLED = re.compile(r"([^aeioulsz])\1$")


def porter_stem(word: str) -> str:
    """Return the stem of a word in lower case."""
    if not SHORTEST <= len(word) <= LONGEST:
        return word
    if word.endswith("s") and not word.endswith("ss"):
        is_long = (word.endswith("sses") and len(word) > 4) or (word.endswith("ies") and len(word) > 3)
        word = word[:-2] if is_long else word[:-1]
    word = _cut_past(word)
    if word.endswith("y") and "v" in _shape(word[:-1]):
        word = f"{word[:-1]}i"
    for expression, endings, least in _STEPS:
        match = expression.search(word)
        stem = word[: match.start()] if match else ""
        # Remove `ion` only after `s` or `t`, as in `adoption`.
        if match and _measure(stem) > least and (match[0] != "ion" or stem.endswith(("s", "t"))):
            word = stem + endings[match[0]]
    if word.endswith("e"):
        measure = _measure(word[:-1])
        if measure > 1 or (measure == 1 and not _is_short(word[:-1])):
            word = word[:-1]
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word


def _cut_past(word: str) -> str:
    """Remove `ed` or `ing`. Undo changes of spelling before these endings, as in `hopping` and `hoping`."""
    if word.endswith("eed") and len(word) > 3:
        return word[:-1] if _measure(word[:-3]) > 0 else word
    ending = next((each for each in ("ed", "ing") if word.endswith(each)), "")
    stem = word.removesuffix(ending)
    if not ending or "v" not in _shape(stem):
        return word
    if stem.endswith(("at", "bl", "iz")) and len(stem) > 2:
        return f"{stem}e"
    if _DOUBLED.search(stem):
        return stem[:-1]
    return f"{stem}e" if _measure(stem) == 1 and _is_short(stem) else stem


def _shape(stem: str) -> str:
    """Return `c` for each consonant and `v` for each vowel of the word."""
    shape = ""
    for letter in stem:
        is_vowel = letter in "aeiou" or (letter == "y" and shape[-1:] == "c")
        shape += "v" if is_vowel else "c"
    return shape


def _measure(stem: str) -> int:
    """Return how often a vowel is followed by a consonant in the stem."""
    return _shape(stem).count("vc")


def _is_short(stem: str) -> bool:
    """Return whether the stem ends like `hop`: consonant, vowel, consonant (not `w`, `x` or `y`)."""
    return _shape(stem).endswith("cvc") and stem[-1] not in "wxy"
