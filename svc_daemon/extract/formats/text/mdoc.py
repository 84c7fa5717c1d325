"""Lines of man pages in mdoc, whose words may be macros themselves: what is seen of them."""

# ruff: noqa: RUF001 - dashes and quotation marks that look like others

import re

_ARGUMENT = re.compile(r'"((?:[^"]|"")*)"?|((?:\\.|[^\s"])(?:\\.|[^\s])*)')
#: Of a line with more words, macros within it are shown as they are written.
_MOST_WORDS = 500
_CLOSING = frozenset(".,:;)]?!")
_OPENING = frozenset("([")

#: What stands around the rest of the line.
_AROUND = {
    "Op": ("[", "]"),
    "Aq": ("<", ">"),
    "Pq": ("(", ")"),
    "Dq": ("“", "”"),
    "Sq": ("‘", "’"),
    "Ql": ("‘", "’"),
    "Qq": ('"', '"'),
    "Bq": ("[", "]"),
    "Brq": ("{", "}"),
}
#: Macros that open such a pair, and those that close it, maybe on another line.
_OPENERS = {f"{macro[:-1]}o": signs[0] for macro, signs in _AROUND.items() if macro not in {"Op", "Ql"}} | {"Oo": "["}
_CLOSERS = {f"{macro[:-1]}c": signs[1] for macro, signs in _AROUND.items() if macro not in {"Op", "Ql"}} | {"Oc": "]"}
#: What macros show before their arguments.
_NAMES = {"Ux": "UNIX", "At": "AT&T UNIX", "Fx": "FreeBSD", "Nx": "NetBSD", "Ox": "OpenBSD", "Dx": "DragonFly"}
_PREFIXES = {"Nd": "-", **_NAMES}
#: What macros show without arguments.
_DEFAULTS = {"Ar": "file ...", "Pa": "~", "Fl": "-"}
_SENTENCES = {
    "Ex": "The {} utility exits 0 on success, and >0 if an error occurs.",
    "Rv": "The {}() function returns the value 0 if successful; otherwise the value -1 is returned and the global "
    "variable errno is set to indicate the error.",
}
#: Other macros whose arguments are shown; these may also stand within a line.
_WORDS = frozenset(
    re.findall(
        "..",
        "AdAnApArBxCdCmDvEcEmEnEoErEsEvFaFcFlFnFoFrFtIcInLbLiLkMsMtNmNoNsPaPfStSxSyTaTnVaVtXcXoXr",
    )
)
_CALLED = frozenset({*_AROUND, *_OPENERS, *_CLOSERS, *_NAMES, *_WORDS})
_REFERENCE = frozenset(f"%{letter}" for letter in "ABCDIJNOPQRTUV")
MACROS = frozenset({*_CALLED, *_PREFIXES, *_SENTENCES, *_REFERENCE, "It", "Dl", "D1", "Fd", "Sm"})


def arguments(rest: str, mark: str = "") -> list[str]:
    """Return the words of a request, with the mark before those that were in quotation marks."""
    found = _ARGUMENT.findall(rest)
    return [mark + quoted.replace('""', '"') if quoted else bare for quoted, bare in found if quoted or bare]


class MdocLines:
    """The lines of a page, of which earlier ones change how later ones look."""

    def __init__(self) -> None:
        self._name = ""
        self._is_spaced = True

    def show(self, macro: str, rest: str) -> str:
        """Return what a line with a macro shows."""
        # What is quoted is no macro.
        words = arguments(rest, "\\&")
        if macro == "Sm":
            self._is_spaced = words != ["off"]
            return ""
        if len(words) > _MOST_WORDS:
            return " ".join(words)
        if macro in _SENTENCES:
            named = [word for word in words if word != "-std"] or [self._name]
            return _SENTENCES[macro].format(", ".join(named))
        if macro == "Nm" and not self._name and words:
            self._name = words[0]
        tail: list[str] = []
        while words and words[-1] in _CLOSING and [macro, *words][-2] not in _AROUND:
            tail.insert(0, words.pop())
        line = _Line(" " if self._is_spaced else "")
        while macro:
            called = (number for number, word in enumerate(words) if word in _CALLED)
            end = next(called, len(words)) if macro not in _REFERENCE else len(words)
            self._show_macro(line, macro, words[:end], is_last=end == len(words))
            macro, words = (words[end], words[end + 1 :]) if end < len(words) else ("", [])
        return line.text + line.ends + "".join(tail)

    def _show_macro(self, line: "_Line", macro: str, words: list[str], *, is_last: bool) -> None:
        """Add a macro and the arguments before the next one."""
        if macro == "Nm" and not words:
            words = [self._name]
        if macro == "An":
            words = [word for word in words if word not in {"-split", "-nosplit"}]
        if macro in _PREFIXES:
            line.add(_PREFIXES[macro])
        if macro in _AROUND:
            line.ends = _AROUND[macro][1] + line.ends
        if sign := _OPENERS.get(macro) or _AROUND.get(macro, [""])[0]:
            line.add(sign)
            line.is_glued = True
        elif macro in _CLOSERS:
            line.text += _CLOSERS[macro]
            line.is_glued = False
        elif macro in {"Ns", "Ap"}:
            line.glue("'" if macro == "Ap" else "")
        elif macro in _DEFAULTS and all(word in _CLOSING for word in words):
            line.add(_DEFAULTS[macro])
            line.is_glued = macro == "Fl" and not words and not is_last
        for word in _joined(macro, words):
            line.add_word(word)
        line.is_glued |= macro == "Pf"


def _joined(macro: str, words: list[str]) -> list[str]:
    """Return the words that a macro shows of its arguments, without those that closing signs end."""
    if macro == "Fl":
        return [word if word in {*_CLOSING, *_OPENING, "|"} else f"-{word}" for word in words]
    if macro == "Fc":
        return [")", *words]
    count = next((number for number, word in enumerate(words) if word in _CLOSING), len(words))
    first, rest = words[:count], words[count:]
    if macro == "Fn" and first:
        first = [f"{first[0]}({', '.join(first[1:])})"]
    elif macro == "Fo" and first:
        first = [f"{first[0]}("]
    elif macro == "Xr" and len(first) > 1:
        first = [f"{first[0]}({first[1]})", *first[2:]]
    elif macro == "In" and first:
        first = [f"<{first[0]}>"]
    elif macro == "Bx":
        first = ["".join([*first[:1], "BSD"]), *first[1:]]
    return first + rest


class _Line:
    """What a line shows so far."""

    def __init__(self, space: str) -> None:
        self.text = ""
        #: Whether no space comes before what is next.
        self.is_glued = False
        self._space = space
        #: What the end of the line ends.
        self.ends = ""

    def add(self, shown: str) -> None:
        self.text += shown if self.is_glued or not self.text else f"{self._space}{shown}"
        self.is_glued = False

    def add_word(self, word: str) -> None:
        if word in _CLOSING:
            self.glue()
        self.add(word)
        self.is_glued = word in _OPENING

    def glue(self, sign: str = "") -> None:
        """Put a sign between what is before and what comes next, without spaces."""
        self.text += sign
        self.is_glued = True
