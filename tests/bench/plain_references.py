"""What a document says, by the plainest means: its raw XML or HTML, or `pdftotext` and `pandoc`.

What no reader sees is left out as far as a few lines can tell. The words count, not their order.
"""

import re
import shutil
import subprocess
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from lxml import etree
from selectolax.lexbor import LexborHTMLParser

#: Elements whose text is in a document, by the beginning of the names of its parts.
OFFICE_TEXTS = {
    "docx": (("word/",), {"t", "v", "pt"}),
    "pptx": (
        ("ppt/slides/", "ppt/notesSlides/", "ppt/charts/", "ppt/diagrams/data", "ppt/comments"),
        {"t", "v", "text"},
    ),
    "xlsx": (("xl/worksheets/", "xl/comments", "xl/drawings/", "xl/charts/"), {"t"}),
}
#: Within these, nobody sees the text.
UNSEEN = {"del", "moveFrom", "rPh", "Fallback", "glossaryDocument", "instrText", "numCache", "externalData"}
UNSEEN_PARTS = ("word/glossary/", "word/styles", "word/webSettings", "word/theme", "word/settings", "word/fontTable")
UNSEEN_TAGS = ("head", "script", "style", "noscript", "template", "iframe", "object")
_WORD = re.compile(r"\w+")


def words(text: str) -> set[str]:
    """Return the distinct words, folded."""
    return set(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


def reference_of(path: Path) -> str | None:
    """Return what the document says; None if there are no plain means for its type. Raises any error of a parser."""
    find = REFERENCES.get(path.suffix.lower().lstrip("."))
    return find(path) if find else None


def _office(path: Path) -> str:
    prefixes, tags = OFFICE_TEXTS[path.suffix.lower().lstrip(".")]
    with ZipFile(path) as archive:
        names = {name.replace("\\", "/"): name for name in archive.namelist() if name.endswith(".xml")}
        chosen = [name for name in names if name.startswith(prefixes) and not name.startswith(UNSEEN_PARTS)]
        pieces = [text for name in chosen for text in _texts(archive.read(names[name]), tags)]
        if "xl/sharedStrings.xml" in names:
            used = {int(text) for name in chosen for text in _shared(archive.read(names[name]))}
            strings = _parse(archive.read(names["xl/sharedStrings.xml"])).findall("{*}si")
            pieces += [" ".join(_text_of(strings[number], tags)) for number in used if number < len(strings)]
    return " ".join(pieces)


def _shared(xml: bytes) -> Iterator[str]:
    for cell in _parse(xml).iter("{*}c"):
        if cell.get("t") == "s":
            yield from (value.text or "" for value in cell.iter("{*}v") if value.text)


def _texts(xml: bytes, tags: set[str]) -> Iterator[str]:
    root = _parse(xml)
    for paragraph in [each for each in root.iter() if _name(each) in {"p", "si", "is", "pt", "comment", "f"}] or [root]:
        yield "".join(_text_of(paragraph, tags))


def _text_of(element: Any, tags: set[str]) -> Iterator[str]:
    for each in element.iter():
        if _name(each) in tags and not any(
            _name(above) in UNSEEN or _is_hidden(above) for above in each.iterancestors()
        ):
            yield each.text or ""


def _is_hidden(element: Any) -> bool:
    return _name(element) == "r" and element.find("{*}rPr/{*}vanish") is not None


def _open_document(path: Path) -> str:
    with ZipFile(path) as archive:
        root = _parse(archive.read("content.xml"))
    for unseen in [each for each in root.iter() if _name(each) in {"tracked-changes", "automatic-styles"}]:
        unseen.getparent().remove(unseen)
    return " ".join("".join(each.itertext()) for each in root.iter() if _name(each) in {"p", "h", "title", "desc"})


def _html(data: bytes) -> str:
    page = LexborHTMLParser(data)
    page.strip_tags([*UNSEEN_TAGS])
    for hidden in page.css("[hidden], [style*='display:none'], [style*='display: none']"):
        hidden.decompose()
    return page.root.text(separator=" ") if page.root is not None else ""


def _epub(path: Path) -> str:
    with ZipFile(path) as archive:
        chapters = [name for name in archive.namelist() if name.lower().endswith((".xhtml", ".html", ".htm"))]
        return " ".join(_html(archive.read(name)) for name in chapters)


def _program(*command: str) -> Callable[[Path], str]:
    def run(path: Path) -> str:
        if shutil.which(command[0]) is None:
            raise FileNotFoundError(f"{command[0]} is not installed")
        words_given = [str(path) if word == "FILE" else word for word in command]
        ended = subprocess.run(words_given, capture_output=True, check=True, timeout=120)
        return ended.stdout.decode("utf-8", "replace")

    return run


def _parse(xml: bytes) -> Any:
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True, recover=True)
    return etree.parse(BytesIO(xml), parser).getroot()


def _name(element: Any) -> str:
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def list_files(folder: Path) -> Iterable[Path]:
    """List the files below a folder for which there are plain means, in order."""
    return (
        path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix.lower().lstrip(".") in REFERENCES
    )


REFERENCES: dict[str, Callable[[Path], str]] = {
    **dict.fromkeys(OFFICE_TEXTS, _office),
    **dict.fromkeys(("odt", "ods", "odp"), _open_document),
    **dict.fromkeys(("html", "htm", "xhtml"), lambda path: _html(path.read_bytes())),
    "epub": _epub,
    "pdf": _program("pdftotext", "-q", "FILE", "-"),
    **{
        kind: _program("pandoc", "-t", "plain", "--wrap=none", "FILE") for kind in ("rtf", "rst", "org", "tex", "ipynb")
    },
}
