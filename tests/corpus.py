"""Make folders of mixed real documents, reproducible by a seed, with the expected outcome of each document.

The prose is from the documentation of the standard library, so that word frequencies are realistic. Every
readable document has a unique phrase; in a PDF it is on a known page.
"""

import ast
import functools
import json
import random
import re
import sysconfig
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from html import escape
from pathlib import Path

from svc_daemon.wire.light.error_codes import SourceErrorCode
from tests.samples import make_corrupt_pdf, make_csv, make_docx, make_html, make_pdf, make_pdf_without_text

_ADJECTIVES = "amber brisk cobalt dappled ebony frosted gilded hollow ivory jagged lilac mossy opaline russet umber"
_NOUNS = "anvil bellows cistern dovecote easel ferry gable harrow inkwell lantern mulberry orchard quay sundial"
_PLACES = "Aldermoor Brackwater Corrieburn Dunmallet Eastholm Fennwick Garrowby Hexley Inverlade Kestrelby"
_FOLDERS = ("handbook", "handbook/people", "pricing/yearly", "legal")
#: Packages of the standard library with enough documentation for a few hundred documents.
_PACKAGES = ("asyncio", "concurrent", "email", "http", "importlib", "logging", "multiprocessing", "unittest")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
_PLAIN = re.compile(r"[A-Z][A-Za-z0-9 ,.;:'()\-/\"=]+\.")


class Outcome(StrEnum):
    READY = "ready"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    #: Relative to the folder, separated by `/`.
    path: str
    outcome: Outcome
    #: The acceptable error codes of a failure.
    codes: tuple[str, ...] = ()
    #: A phrase that only this document contains; empty if the document can't be read.
    phrase: str = ""
    #: The page with the phrase, from 1; None if the format has no pages.
    page: int | None = None


#: The extension, the bytes, and the page with the phrase or the error code.
_Content = tuple[str, bytes] | tuple[str, bytes, int | SourceErrorCode]


def make_corpus(folder: Path, count: int) -> list[Made]:
    """Write `count` documents to `folder`, including every kind if there are at least 20, and return what was made."""
    return [_make(folder, number, Prose(f"0:{number}")) for number in range(count)]


def _make(folder: Path, number: int, prose: "Prose") -> Made:
    phrase = phrase_of(number)
    extension, data, *special = _KINDS[number % len(_KINDS)](prose, phrase)
    path = f"{_FOLDERS[number % len(_FOLDERS)]}/{number:03}-{phrase.split()[1]}.{extension}"
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_bytes(data)
    page = special[0] if special else None
    if isinstance(page, SourceErrorCode):
        return Made(path=path, outcome=Outcome.FAILED, codes=(page,))
    if not data:
        return Made(path=path, outcome=Outcome.SKIPPED)
    return Made(path=path, outcome=Outcome.READY, phrase=phrase, page=page)


def phrase_of(number: int) -> str:
    """Return the unique phrase of document `number`, three words; it repeats after about two thousand documents."""
    adjectives, nouns, places = _ADJECTIVES.split(), _NOUNS.split(), _PLACES.split()
    rest, adjective = divmod(number, len(adjectives))
    rest, noun = divmod(rest, len(nouns))
    return f"{adjectives[adjective]} {nouns[(noun + number) % len(nouns)]} {places[(rest + number) % len(places)]}"


class Prose:
    """Random sentences of real documentation, reproducible by a seed."""

    def __init__(self, seed: object, packages: tuple[str, ...] = _PACKAGES) -> None:
        self.random = random.Random(str(seed))
        self._pool = sentences(packages)

    def sentence(self) -> str:
        return self.random.choice(self._pool)

    def paragraph(self) -> str:
        return " ".join(self.sentence() for _ in range(self.random.randint(3, 7)))

    def paragraphs(self, count: int, phrase: str = "") -> list[str]:
        """Return `count` paragraphs, one of which contains the phrase, if there is one."""
        made = [self.paragraph() for _ in range(count)]
        if phrase:
            made[self.random.randrange(count)] += f" The {phrase} opens at dawn."
        return made

    def heading(self) -> str:
        return " ".join(self.sentence().rstrip(".").split()[:4])


@functools.cache
def sentences(packages: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return distinct sentences from the documentation of these packages, or of the whole standard library."""
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
    return "txt", "\n\n".join(lines).encode()


def _markdown(prose: Prose, phrase: str) -> _Content:
    sections = (f"## {prose.heading()}\n\n{paragraph}\n" for paragraph in prose.paragraphs(6, phrase))
    return "md", "\n".join([f"# {prose.heading()}\n", *sections]).encode()


def _html(prose: Prose, phrase: str) -> _Content:
    sections = (f"<h2>{escape(prose.heading())}</h2><p>{escape(text)}</p>" for text in prose.paragraphs(6, phrase))
    return "html", make_html("".join(sections), title=escape(prose.heading()))


def _csv(prose: Prose, phrase: str) -> _Content:
    rows = [[prose.heading(), prose.random.randint(1, 900), note] for note in prose.paragraphs(12, phrase)]
    return "csv", make_csv([["name", "price", "note"], *rows])


def _json(prose: Prose, phrase: str) -> _Content:
    items = [{"title": prose.heading(), "body": body} for body in prose.paragraphs(6, phrase)]
    return "json", json.dumps({"version": 1, "items": items}, indent=1).encode()


def _code(prose: Prose, phrase: str) -> _Content:
    functions = (
        f'def step_{number}(value):\n    """{textwrap.fill(body, 90, subsequent_indent="    ")}"""\n    return value\n'
        for number, body in enumerate(prose.paragraphs(5, phrase))
    )
    return "py", "\n\n".join(functions).encode()


def _docx(prose: Prose, phrase: str) -> _Content:
    sections = {f"{number}. {prose.heading()}": text for number, text in enumerate(prose.paragraphs(6, phrase), 1)}
    return "docx", make_docx(sections, title=prose.heading())


def _pdf(prose: Prose, phrase: str) -> _Content:
    pages = [prose.paragraphs(3) for _ in range(prose.random.randint(2, 5))]
    page = prose.random.randrange(len(pages))
    pages[page] = prose.paragraphs(3, phrase)
    return "pdf", make_pdf(["\n\n".join(page) for page in pages]), page + 1


def _scan(prose: Prose, phrase: str) -> _Content:
    return "pdf", make_pdf_without_text(), SourceErrorCode.NO_EXTRACTABLE_TEXT


def _corrupt_pdf(prose: Prose, phrase: str) -> _Content:
    return "pdf", make_corrupt_pdf(), SourceErrorCode.DOCUMENT_UNREADABLE


def _broken_docx(prose: Prose, phrase: str) -> _Content:
    return "docx", _docx(prose, phrase)[1][:4000], SourceErrorCode.DOCUMENT_UNREADABLE


def _empty(prose: Prose, phrase: str) -> _Content:
    return "txt", b""


#: The kinds in the order in which they are made: mostly text, and four of twenty are unreadable or empty.
_KINDS: tuple[Callable[[Prose, str], _Content], ...] = (
    *(_text, _markdown, _pdf, _html, _docx, _markdown, _csv, _text, _json, _code),
    *(_empty, _pdf, _markdown, _corrupt_pdf, _text, _broken_docx, _html, _scan, _docx, _text),
)
