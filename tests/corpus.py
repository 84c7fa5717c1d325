"""Folders of mixed real documents, the same for the same seed, and what has to become of each one.

The prose is the standard library's own documentation, so that words are as common or rare as in real text. Every
document that can be read carries one phrase that no other has; in a PDF it stands on a known page.
"""

import ast
import csv
import functools
import io
import json
import random
import re
import sysconfig
import textwrap
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from html import escape
from pathlib import Path

from docx import Document as DocxDocument

from svc_daemon.wire.errors import SourceErrorCode

_ADJECTIVES = "amber brisk cobalt dappled ebony frosted gilded hollow ivory jagged lilac mossy opaline russet umber"
_NOUNS = "anvil bellows cistern dovecote easel ferry gable harrow inkwell lantern mulberry orchard quay sundial"
_PLACES = "Aldermoor Brackwater Corrieburn Dunmallet Eastholm Fennwick Garrowby Hexley Inverlade Kestrelby"
_FOLDERS = ("handbook", "handbook/people", "pricing/yearly", "legal")
#: Packages of the standard library whose documentation is enough for some hundred documents.
_PACKAGES = ("asyncio", "concurrent", "email", "http", "importlib", "logging", "multiprocessing", "unittest")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
_PLAIN = re.compile(r"[A-Z][A-Za-z0-9 ,.;:'()\-/\"=]+\.")


class Outcome(StrEnum):
    """What becomes of a document when its folder is uploaded."""

    READY = "ready"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """One document that was made."""

    #: Under the folder, `/`-separated.
    path: str
    outcome: Outcome
    #: Why it fails; each of them is right.
    codes: tuple[str, ...] = ()
    #: Words that stand together in this document only; empty where nothing can be read.
    phrase: str = ""
    #: The page with the phrase, from 1; None where the format has none.
    page: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Content:
    extension: str
    data: bytes
    outcome: Outcome = Outcome.READY
    codes: tuple[SourceErrorCode, ...] = ()
    page: int | None = None


def make_corpus(folder: Path, count: int, seed: int = 0) -> list[Made]:
    """Write `count` documents under `folder`; from 20 on, every kind is among them."""
    return [_make(folder, number, Prose(f"{seed}:{number}")) for number in range(count)]


def _make(folder: Path, number: int, prose: "Prose") -> Made:
    phrase = phrase_of(number)
    content = _KINDS[number % len(_KINDS)](prose, phrase)
    path = f"{_FOLDERS[number % len(_FOLDERS)]}/{number:03}-{phrase.split()[1]}.{content.extension}"
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_bytes(content.data)
    return Made(
        path=path,
        outcome=content.outcome,
        codes=tuple(content.codes),
        phrase=phrase if content.outcome is Outcome.READY else "",
        page=content.page,
    )


def phrase_of(number: int) -> str:
    """Three words that stand together in document `number` only; repeats after some two thousand."""
    adjectives, nouns, places = _ADJECTIVES.split(), _NOUNS.split(), _PLACES.split()
    rest, adjective = divmod(number, len(adjectives))
    rest, noun = divmod(rest, len(nouns))
    return f"{adjectives[adjective]} {nouns[(noun + number) % len(nouns)]} {places[(rest + number) % len(places)]}"


class Prose:
    """Sentences of real documentation in an order that the seed decides."""

    def __init__(self, seed: object, packages: tuple[str, ...] = _PACKAGES) -> None:
        self.random = random.Random(str(seed))
        self._pool = sentences(packages)

    def sentence(self) -> str:
        return self.random.choice(self._pool)

    def paragraph(self) -> str:
        return " ".join(self.sentence() for _ in range(self.random.randint(3, 7)))

    def paragraphs(self, count: int, phrase: str = "") -> list[str]:
        """So many paragraphs; the phrase, where one is given, stands in one of them."""
        made = [self.paragraph() for _ in range(count)]
        if phrase:
            made[self.random.randrange(count)] += f" The {phrase} opens at dawn."
        return made

    def heading(self) -> str:
        return " ".join(self.sentence().rstrip(".").split()[:4])


@functools.cache
def sentences(packages: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Distinct sentences from the documentation of these packages, or of the whole standard library."""
    library = Path(sysconfig.get_path("stdlib"))
    roots = [library / package for package in packages] or [library]
    found = {sentence for root in roots for path in root.rglob("*.py") for sentence in _sentences_of(path, library)}
    return tuple(sorted(found))


def _sentences_of(path: Path, library: Path) -> Iterator[str]:
    if {"test", "tests", "idlelib", "lib2to3", "site-packages"} & set(path.relative_to(library).parts):
        return
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for paragraph in (ast.get_docstring(node) or "").split("\n\n"):
                candidates = _SENTENCE_END.split(" ".join(paragraph.split()))
                yield from (text for text in candidates if 6 <= len(text.split()) <= 40 and _PLAIN.fullmatch(text))


def _text(prose: Prose, phrase: str) -> _Content:
    lines = (textwrap.fill(paragraph, 90) for paragraph in prose.paragraphs(prose.random.randint(2, 12), phrase))
    return _Content(extension="txt", data="\n\n".join(lines).encode())


def _markdown(prose: Prose, phrase: str) -> _Content:
    sections = (f"## {prose.heading()}\n\n{paragraph}\n" for paragraph in prose.paragraphs(6, phrase))
    return _Content(extension="md", data="\n".join([f"# {prose.heading()}\n", *sections]).encode())


def _html(prose: Prose, phrase: str) -> _Content:
    body = "".join(
        f"<h2>{escape(prose.heading())}</h2><p>{escape(paragraph)}</p>" for paragraph in prose.paragraphs(6, phrase)
    )
    title = escape(prose.heading())
    page = f"<!doctype html><html lang=en><head><meta charset=utf-8><title>{title}</title></head>"
    return _Content(
        extension="html", data=f"{page}<body><article><h1>{title}</h1>{body}</article></body></html>".encode()
    )


def _csv(prose: Prose, phrase: str) -> _Content:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["name", "price", "note"])
    for note in prose.paragraphs(12, phrase):
        writer.writerow([prose.heading(), prose.random.randint(1, 900), note])
    return _Content(extension="csv", data=text.getvalue().encode())


def _json(prose: Prose, phrase: str) -> _Content:
    items = [{"title": prose.heading(), "body": body} for body in prose.paragraphs(6, phrase)]
    return _Content(extension="json", data=json.dumps({"version": 1, "items": items}, indent=1).encode())


def _code(prose: Prose, phrase: str) -> _Content:
    functions = (
        f'def step_{number}(value):\n    """{textwrap.fill(body, 90, subsequent_indent="    ")}"""\n    return value\n'
        for number, body in enumerate(prose.paragraphs(5, phrase))
    )
    return _Content(extension="py", data="\n\n".join(functions).encode())


def _docx(prose: Prose, phrase: str) -> _Content:
    document = DocxDocument()
    document.add_heading(prose.heading(), 1)
    for paragraph in prose.paragraphs(6, phrase):
        document.add_heading(prose.heading(), 2)
        document.add_paragraph(paragraph)
    written = io.BytesIO()
    document.save(written)
    return _Content(extension="docx", data=_without_times(written))


def _without_times(written: io.BytesIO) -> bytes:
    """The same archive with no time of writing in it, so that the same seed gives the same bytes."""
    timeless = io.BytesIO()
    with zipfile.ZipFile(written) as old, zipfile.ZipFile(timeless, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(zipfile.ZipInfo(name), old.read(name), zipfile.ZIP_DEFLATED)
    return timeless.getvalue()


def _pdf(prose: Prose, phrase: str) -> _Content:
    pages = [prose.paragraphs(3) for _ in range(prose.random.randint(2, 5))]
    page = prose.random.randrange(len(pages))
    pages[page] = prose.paragraphs(3, phrase)
    return _Content(extension="pdf", data=pdf([_wrapped(paragraphs) for paragraphs in pages]), page=page + 1)


def _wrapped(paragraphs: list[str]) -> list[str]:
    return [line for paragraph in paragraphs for line in [*textwrap.wrap(paragraph, 85), ""]]


def _scan(prose: Prose, phrase: str) -> _Content:
    codes = (SourceErrorCode.NO_EXTRACTABLE_TEXT,)
    return _Content(extension="pdf", data=pdf([[], []]), outcome=Outcome.FAILED, codes=codes)


def _cut_pdf(prose: Prose, phrase: str) -> _Content:
    codes = (SourceErrorCode.DOCUMENT_UNREADABLE,)
    return _Content(extension="pdf", data=_pdf(prose, phrase).data[:300], outcome=Outcome.FAILED, codes=codes)


def _broken_docx(prose: Prose, phrase: str) -> _Content:
    codes = (SourceErrorCode.DOCUMENT_UNREADABLE,)
    return _Content(extension="docx", data=_docx(prose, phrase).data[:4000], outcome=Outcome.FAILED, codes=codes)


def _empty(prose: Prose, phrase: str) -> _Content:
    return _Content(extension="txt", data=b"", outcome=Outcome.SKIPPED)


def pdf(pages: list[list[str]]) -> bytes:
    """A PDF with these lines on its pages; a page without lines holds only a drawn box, as a scan would."""
    first_page = 4
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count %d /Kids [%s] >>"
        % (len(pages), b" ".join(b"%d 0 R" % (first_page + 2 * index) for index in range(len(pages)))),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for index, lines in enumerate(pages):
        content = _drawn(lines)
        objects += [
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents %d 0 R"
            b" /Resources << /Font << /F1 3 0 R >> >> >>" % (first_page + 2 * index + 1),
            b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
        ]
    return _assembled(objects)


def _drawn(lines: list[str]) -> bytes:
    if not lines:
        return b"0.8 g 72 72 400 600 re f"
    escaped = (re.sub(r"([\\()])", r"\\\1", line) for line in lines)
    shown = "\n".join(f"({line}) Tj T*" for line in escaped)
    return f"BT /F1 11 Tf 14 TL 60 780 Td\n{shown}\nET".encode("cp1252")


def _assembled(objects: list[bytes]) -> bytes:
    """Header, numbered objects, the table of their offsets, trailer."""
    out = bytearray(b"%PDF-1.4\n")
    offsets = []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n%s" % (len(objects) + 1, table)
    out += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)
    return bytes(out)


_Maker = Callable[[Prose, str], _Content]
#: How often each kind comes: mostly text, and of twenty documents four that can't be read.
_KINDS: tuple[_Maker, ...] = (
    *(_text, _markdown, _pdf, _html, _docx, _markdown, _csv, _text, _json, _code),
    *(_empty, _pdf, _markdown, _cut_pdf, _text, _broken_docx, _html, _scan, _docx, _text),
)
