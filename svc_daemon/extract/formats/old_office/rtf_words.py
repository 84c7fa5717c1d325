"""What control words of RTF mean: code pages, characters, and the groups that hold no text of the page."""

import codecs
import re

#: Code pages by the number of a font's character set.
CHARSETS = {
    0: "cp1252",
    1: "",
    77: "mac_roman",
    128: "cp932",
    129: "cp949",
    130: "johab",
    134: "gbk",
    136: "cp950",
    161: "cp1253",
    162: "cp1254",
    163: "cp1258",
    177: "cp1255",
    178: "cp1256",
    186: "cp1257",
    204: "cp1251",
    222: "cp874",
    238: "cp1250",
    254: "cp437",
    255: "cp437",
}
#: Characters with a control word or symbol of their own.
CHARACTERS = {
    "tab": "\t",
    "line": "\n",
    "lbr": "\n",
    "emdash": "—",
    "endash": "\u2013",
    "bullet": "•",
    "lquote": "\u2018",
    "rquote": "\u2019",
    "ldblquote": "“",
    "rdblquote": "”",
    "emspace": " ",
    "enspace": " ",
    "qmspace": " ",
    "zwj": "\u200d",
    "zwnj": "\u200c",
    "ltrmark": "",
    "rtlmark": "",
    "~": "\u00a0",
    "_": "-",
    "-": "",
    "\\": "\\",
    "{": "{",
    "}": "}",
    "nestcell": " ",
    "nestrow": " ",
}
#: Groups without text of the page. A group that begins with `\*` is skipped too, unless its name is in `READ`.
SKIPPED = frozenset(
    (
        *("colortbl", "pict", "objdata", "themedata", "fldinst", "filetbl", "bkmkstart", "bkmkend", "shprslt"),
        *("listtable", "listoverridetable", "rsidtbl", "generator", "atnref", "atndate", "atntime", "tc", "xe", "rxe"),
        *("txe", "pntxta", "pntxtb", "nonshppict", "author", "operator", "company", "subject", "keywords", "comment"),
        *("doccomm", "category", "manager", "hlinkbase", "creatim", "revtim", "printim", "buptim", "private", "ftnsep"),
        *("ftnsepc", "ftncn", "aftnsep", "aftnsepc", "aftncn", "ffname", "ffdeftext", "ffformat", "ffl", "upr"),
        *("stylesheet", "fonttbl"),
    )
)
READ = frozenset(
    ("shpinst", "annotation", "ud", "moMath", "moMathPara", "footnote", "cs", "atnauthor", "shppict", "picprop")
)
#: Properties of pictures and shapes that hold words: the description, and the text of WordArt.
DESCRIBING = frozenset(("wzDescription", "gtextUNICODE"))
#: Groups whose text is apart from the paragraph in which they begin.
APART = frozenset(
    (
        *("footnote", "annotation", "shptxt", "atnauthor", "listtext", "pntext", "title", "sn", "sv"),
        *(f"{name}{place}" for name in ("header", "footer") for place in ("", "l", "r", "f")),
    )
)
#: Control words that change the group in which they stand, and are followed even where text is skipped.
GROUP_WORDS = frozenset(
    (
        *("uc", "f", "v", "deleted", "cf", "highlight", "cb", "chcbpat", "chshdng", "cbpat", "shading", "fs", "plain"),
        *("strike", "striked", "super", "sub", "nosupersub"),
    )
)


def code_page(number: int) -> str:
    """Return the codec of a code page, or that of Western Europe if there is none."""
    name = {0: "cp1252", 10000: "mac_roman", 936: "gbk", 1361: "johab", 65001: "utf-8"}.get(number, f"cp{number}")
    try:
        return codecs.lookup(name).name
    except LookupError:
        return "cp1252"


#: Longest part at a file's beginning in which its tables are looked for.
_HEAD_BYTES = 1024**2


def head_table(data: bytes, name: bytes) -> bytes:
    """Return a table of the file's head, such as that of its fonts."""
    start = data.find(b"{\\" + name, 0, _HEAD_BYTES)
    depth = 0
    for brace in re.finditer(rb"\\[{}\\]|[{}]", data[start : start + _HEAD_BYTES] if start >= 0 else b""):
        depth += {b"{": 1, b"}": -1}.get(brace[0], 0)
        if depth == 0:
            return data[start : start + brace.end()]
    return b""
