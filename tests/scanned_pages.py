"""Scanned pages without a model: lines as bars, and a recogniser that reads them, as a program of its own would.

A line is a row of black and white cells: a black one, the number of its bytes, its confidence in percent, its bytes.
`SVC_OCR` names `RECOGNIZER`. A line that begins with `!` makes the recogniser misbehave, as a picture can a real one.
"""

import os
import signal
import time
from collections.abc import Sequence
from io import BytesIO
from typing import Any

import numpy as np
import pypdfium2
from numpy.typing import NDArray
from PIL import Image

from svc_daemon.extract.scans.recognizers import Line, Recognize

RECOGNIZER = "tests.scanned_pages:load"
#: Pages are as large as pages are drawn, so that no cell is blurred.
WIDTH, HEIGHT = 1130, 1600
_CELL, _MARGIN, _PITCH = 5, 40, 12
#: Most bytes of a line.
BYTES = (WIDTH - 2 * _MARGIN) // _CELL // 8 - 3


def page(*lines: str, confidence: int = 97) -> Image.Image:
    """Return a page with these lines of at most `BYTES` bytes."""
    pixels = np.full((HEIGHT, WIDTH, 3), 255, np.uint8)
    for number, line in enumerate(lines):
        packed = bytes([255, len(line.encode()), confidence]) + line.encode()
        top = _MARGIN + number * _PITCH
        for place, bit in enumerate(np.unpackbits(np.frombuffer(packed, np.uint8))):
            if bit:
                left = _MARGIN + place * _CELL
                pixels[top : top + _PITCH - 2, left : left + _CELL] = 0
    return Image.fromarray(pixels)


def pdf(pages: Sequence[Image.Image]) -> bytes:
    """Return a PDF that has nothing but these pictures."""
    return saved(pages, "PDF", resolution=100.0, quality=100, subsampling=0)


def saved(pages: Sequence[Image.Image], kind: str, **options: Any) -> bytes:
    """Return a file with these pages, of a kind that may have several, or one."""
    file = BytesIO()
    if len(pages) > 1:
        options |= {"save_all": True, "append_images": pages[1:]}
    pages[0].copy().save(file, kind, **options)
    return file.getvalue()


def scan(count: int, words: str = "umber") -> bytes:
    """Return a PDF of so many pages, each with its number."""
    return pdf([page(f"The {words} quay {number}.") for number in range(1, count + 1)])


def joined(*files: bytes) -> bytes:
    """Return one PDF with the pages of several."""
    whole, file = pypdfium2.PdfDocument.new(), BytesIO()
    for each in files:
        whole.import_pages(pypdfium2.PdfDocument(each))
    whole.save(file)
    return file.getvalue()


def load() -> Recognize:
    return _recognize


def _recognize(picture: NDArray[np.uint8]) -> list[Line]:
    lines = []
    for top in range(_MARGIN, picture.shape[0] - _MARGIN, _PITCH):
        row = picture[top + _PITCH // 2, _MARGIN + _CELL // 2 : -_MARGIN : _CELL, 0] < 128
        read = np.packbits(row).tobytes()
        if len(read) > 3 and read[0] == 255:
            text = read[3 : 3 + read[1]].decode()
            if text.startswith("!"):
                _misbehave(text)
            left, right = float(_MARGIN), float(_MARGIN + 4 * len(text))
            box = [(left, top), (right, top), (right, top + 10.0), (left, top + 10.0)]
            lines.append(Line(text, read[2] / 100, box))
    return lines


def _misbehave(text: str) -> None:
    what, _, amount = text[1:].partition(" ")
    if what == "wait":
        time.sleep(float(amount))
    elif what == "busy":
        while True:
            pass
    elif what == "eat":
        # More memory than any limit allows.
        bytearray(1 << 40)
    else:
        os.kill(os.getpid(), getattr(signal, what))
