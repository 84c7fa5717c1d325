"""How well scans are read: pages rendered from known text, recognised by the daemon's own confined child.

Needs the extra `ocr`, and DejaVu fonts (Debian's `fonts-dejavu-core`). Single columns are judged by the share of wrong
characters, the others by the share of words that are found. `--scans 3` reads the first ones alone.
"""

import asyncio
import tempfile
import textwrap
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
import psutil
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from svc_daemon.core.text.chunking import RecognizedPage
from svc_daemon.extract.child_limits import CageLimits
from svc_daemon.extract.extractors import Extractor
from svc_daemon.extract.scans.recognizers import choose
from tests.bench.harness import Row, make_parser, report
from tests.extract.readings import document_at
from tests.processes import children_of

FONTS = Path("/usr/share/fonts/truetype/dejavu")
LINES, COLUMNS, POINTS = 35, 80, 11
TABLE = [
    ("Ship", "Berth", "Cargo", "Tons"),
    *((f"Vessel {n}", str(n % 9), "timber", str(900 + 37 * n)) for n in range(20)),
]
#: Languages in scripts that the model does not know.
UNREADABLE = ("ru", "el")


class Scan(NamedTuple):
    name: str
    pages: Sequence[Image.Image]
    #: What is on each page.
    text: str
    #: Whether its characters are compared in order, or its words alone.
    is_in_order: bool = False
    suffix: str = ".pdf"


def main() -> None:
    parser = make_parser(__doc__, base=None, scans=99)
    options = parser.parse_args()
    report("ocr", options, asyncio.run(read_all(options.scans)))


def list_scans() -> Iterator[Scan]:
    given = (Path(__file__).with_name("ocr_texts.txt")).read_text("utf-8").strip().split("\n")
    texts = dict(zip(given[::2], given[1::2], strict=True))
    unreadable = {language: texts.pop(language) for language in UNREADABLE}
    skews = dict(zip(texts, (0, 1, -2, 3, -4, 5), strict=True))
    for dpi in (300, 150):
        for language, text in texts.items():
            lines = textwrap.wrap(f"{text} " * 6, COLUMNS)[:LINES]
            sheet = worn(typed([lines], dpi, sans=language in ("de", "it")), skews[language])
            yield Scan(f"{language} {dpi} dpi, skew {skews[language]}", [sheet], " ".join(lines), is_in_order=True)
    for language, dpi in (("en", 300), ("fr", 150)):
        columns = [textwrap.wrap(f"{text} " * 6, 38)[:LINES] for text in (texts[language], texts["es"])]
        yield Scan(f"two columns {dpi} dpi", [worn(typed(columns, dpi), 1)], " ".join(map(" ".join, columns)), True)
    for dpi in (300, 150):
        cells = [[row[column] for row in TABLE] for column in range(4)]
        yield Scan(f"table {dpi} dpi", [worn(typed(cells, dpi), 0)], " ".join(map(" ".join, TABLE)))
    for language in ("en", "de"):
        lines = textwrap.wrap(f"{texts[language]} " * 6, COLUMNS)[:LINES]
        yield Scan(f"photo {language}", [photographed(typed([lines], 200))], " ".join(lines), suffix=".jpg")
    lines = textwrap.wrap(f"{texts['it']} ", COLUMNS)
    yield Scan("ten sheets of TIFF", [worn(typed([lines], 200), 0)] * 10, " ".join(lines), True, ".tiff")
    for language, text in unreadable.items():
        yield Scan(f"{language}: not read", [typed([textwrap.wrap(text * 9, COLUMNS)], 150)], "")


def typed(columns: Sequence[Sequence[str]], dpi: int, *, sans: bool = False) -> Image.Image:
    """Return a sheet of A4 with these columns of lines."""
    sheet = Image.new("L", (round(8.27 * dpi), round(11.69 * dpi)), 255)
    draw = ImageDraw.Draw(sheet)
    points = POINTS if len(columns) == 1 else 9
    font = ImageFont.truetype(FONTS / f"DejaVu{'Sans' if sans else 'Serif'}.ttf", round(points * dpi / 72))
    for place, lines in enumerate(columns):
        left = (0.8 + 6.8 / len(columns) * place) * dpi
        for number, line in enumerate(lines):
            draw.text((left, (0.9 + points * 1.5 / 72 * number) * dpi), line, font=font, fill=0)
    return sheet


def worn(sheet: Image.Image, skew: float) -> Image.Image:
    """Return the sheet as a scanner sees it: askew, grey and noisy."""
    turned = sheet.rotate(skew, Image.Resampling.BICUBIC, fillcolor=255)
    noise = np.random.default_rng(7).normal(0, 14, (turned.height, turned.width))
    return Image.fromarray(np.clip(np.asarray(turned) * 0.9 + 12 + noise, 0, 255).astype(np.uint8))


def photographed(sheet: Image.Image) -> Image.Image:
    """Return the sheet as a telephone sees it: from an angle, blurred, and darker to one side."""
    width, height = sheet.size
    quad = (-0.04 * width, -0.03 * height, 0.02 * width, 1.03 * height, 1.05 * width, 1.01 * height, 0.98 * width, 0)
    seen = sheet.transform(sheet.size, Image.Transform.QUAD, quad, Image.Resampling.BICUBIC, fillcolor=200)
    shade = np.linspace(1.0, 0.6, width)[None, :]
    blurred = seen.filter(ImageFilter.GaussianBlur(0.8))
    noise = np.random.default_rng(9).normal(0, 8, (height, width))
    return Image.fromarray(np.clip(np.asarray(blurred) * shade + noise, 0, 255).astype(np.uint8))


async def read_all(most: int) -> list[Row]:
    limits = CageLimits(recognizer=choose("auto").name)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        extractor = Extractor(Path(folder) / "scratch", limits)
        for scan in list(list_scans())[:most]:
            path = Path(folder) / f"scan{scan.suffix}"
            saved, (first, *rest) = BytesIO(), scan.pages
            more = {"save_all": True, "append_images": rest} if rest else {}
            first.copy().save(saved, {".pdf": "PDF", ".jpg": "JPEG", ".tiff": "TIFF"}[scan.suffix], quality=85, **more)
            path.write_bytes(saved.getvalue())
            rows.append(await read(extractor, path, scan))
        await extractor.close()
    return rows


async def read(extractor: Extractor, path: Path, scan: Scan) -> Row:
    began_s, peaks = time.monotonic(), asyncio.create_task(watch_memory())
    numbers = range(1, len(scan.pages) + 1)
    pages: list[RecognizedPage] = [page async for page in extractor.recognize(document_at(path), numbers)]
    took_s = time.monotonic() - began_s
    peaks.cancel()
    with suppress(asyncio.CancelledError):
        await peaks
    texts = [" ".join(page.text.split()) for page in pages]
    wrong = [errors(scan.text, text) for text in texts] if scan.is_in_order else []
    return {
        "scan": scan.name,
        "wrong_characters": f"{sum(wrong) / len(wrong):.2%}" if wrong else "",
        "words_found": f"{sum(found(scan.text, text) for text in texts) / len(texts):.1%}" if scan.text else "",
        "confidence": round(min(page.confidence for page in pages), 3),
        "not_read": bool(pages[0].problem),
        "seconds_a_page": round(took_s / len(pages), 1),
        "memory_mb": MEMORY["peak"],
    }


MEMORY = {"peak": 0}


async def watch_memory() -> None:
    """Note the peak memory of the child, as the system counts it."""
    MEMORY["peak"] = 0
    while True:
        for server in children_of(None, "fork_server"):
            for child in server.children():
                with suppress(psutil.Error):
                    MEMORY["peak"] = max(MEMORY["peak"], child.memory_info().rss // 1024**2)
        await asyncio.sleep(0.2)


def errors(text: str, read: str) -> float:
    """Return the edit distance as a share of the text's characters."""
    row = list(range(len(read) + 1))
    for number, wanted in enumerate(text, 1):
        diagonal, row[0] = row[0], number
        for place, seen in enumerate(read, 1):
            diagonal, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, diagonal + (wanted != seen))
    return row[-1] / len(text)


def found(text: str, read: str) -> float:
    """Return the share of the text's words that are in what was read, as often as they are in the text."""
    words, seen = Counter(text.split()), Counter(read.replace("|", " ").split())
    return (words & seen).total() / words.total()


if __name__ == "__main__":
    main()
