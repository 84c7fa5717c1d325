"""Pages as pixels: those of a PDF are drawn, and those of picture files decoded. Needs the extra `ocr`."""

import warnings
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from io import BytesIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps
from PIL.TiffImagePlugin import STRIPOFFSETS, TILEOFFSETS, TiffImageFile

#: A picture: rows of pixels of red, green and blue.
Picture = NDArray[np.uint8]

#: The longer side of a picture in pixels; larger ones are made smaller. Measured on pages of 35 to 60 lines: with 1200,
#: small print gets lost; 2000 takes half as long again, and reads no better.
SIDE_PIXELS = 1600
#: Maximum size of a picture, which is decoded as a whole: A3 with 600 dots per inch.
_MOST_PIXELS = 70_000_000
#: What damaged pictures raise. A page that is missing in a TIFF is an EOFError.
_DAMAGES = (OSError, SyntaxError, ValueError, TypeError, KeyError)


class PictureUnreadable(Exception):
    """The page's picture can't be decoded. The message continues a sentence that begins with the page."""


def opened_pages(data: bytes, content_type: str) -> Callable[[int], Picture]:
    """Return a function that draws a page, from 1, of a PDF or a picture file; it raises PictureUnreadable."""
    if content_type != "application/pdf":
        return partial(_decode, _opened(data), len(data))
    import pypdfium2  # noqa: PLC0415 - not for picture files

    pdf = pypdfium2.PdfDocument(data)
    pdf.init_forms()

    def draw(number: int) -> Picture:
        try:
            with closing(pdf[number - 1]) as page:
                scale = SIDE_PIXELS / max(1.0, *page.get_size())
                return np.asarray(page.render(scale=scale).to_pil().convert("RGB"))
        except pypdfium2.PdfiumError as error:
            raise PictureUnreadable("it can't be drawn") from error

    return draw


def count_frames(data: bytes) -> int:
    """Return the number of pages of a picture file: one, except in a TIFF. Raises PictureUnreadable."""
    with _opened(data) as image:
        count = 1
        if image.format == "TIFF":
            # Not `n_frames`, for which no page of a TIFF may be damaged.
            with suppress(EOFError):
                while True:
                    try:
                        image.seek(count)
                    except _DAMAGES:
                        # What is behind it can't be found.
                        return count + 1
                    count += 1
        return count


def _opened(data: bytes) -> Image.Image:
    # The size is checked when a picture is decoded.
    Image.MAX_IMAGE_PIXELS = None
    try:
        return Image.open(BytesIO(data), formats=("PNG", "JPEG", "TIFF", "WEBP"))
    except _DAMAGES as error:
        raise PictureUnreadable("its picture is damaged") from error


def _decode(image: Image.Image, size_bytes: int, number: int) -> Picture:
    """Return a page upright as its camera noted, on white where it is transparent, and not too large."""
    try:
        if number > 1:
            with warnings.catch_warnings():
                warnings.filterwarnings("error", "Corrupt|Truncated", UserWarning)
                image.seek(number - 1)
        if isinstance(image, TiffImageFile) and not _has_pixels(image, size_bytes):
            # It would be decoded as the first page, without an error.
            raise PictureUnreadable("its picture is damaged")
        if image.width * image.height > _MOST_PIXELS:
            raise PictureUnreadable(f"it has more than {_MOST_PIXELS // 1_000_000} million pixels")
        # A JPEG can be decoded in a smaller size, which saves time and memory.
        image.draft("RGB", (2 * SIDE_PIXELS, 2 * SIDE_PIXELS))
        frame: Image.Image = ImageOps.exif_transpose(image)
        if frame.mode[0] in "IF":
            # 16 bits for each pixel or more, of which not all may be in use: the brightest is white.
            values = np.nan_to_num(np.asarray(frame, np.float32), posinf=0, neginf=0)
            frame = Image.fromarray((values * (255 / max(values.max(), 1e-6))).clip(0, 255).astype(np.uint8))
        if "A" in frame.getbands() or "transparency" in frame.info:
            frame = frame.convert("RGBA")
            frame = Image.alpha_composite(Image.new("RGBA", frame.size, "white"), frame)
        frame = frame.convert("RGB")
        frame.thumbnail((SIDE_PIXELS, SIDE_PIXELS), Image.Resampling.LANCZOS)
        return np.asarray(frame)
    except (*_DAMAGES, EOFError, UserWarning) as error:
        raise PictureUnreadable("its picture is damaged") from error


def _has_pixels(image: TiffImageFile, size_bytes: int) -> bool:
    """Whether the current page of a TIFF says where its pixels are."""
    offsets = image.tag_v2.get(STRIPOFFSETS) or image.tag_v2.get(TILEOFFSETS) or ()
    return bool(offsets) and max(offsets) < size_bytes
