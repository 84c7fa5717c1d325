"""The main part of a web page: the part around the text that trafilatura finds, whole, without menus."""

from collections.abc import Sequence
from typing import Any

import lxml_html_clean  # noqa: F401  trafilatura needs it and does not ask for it by name
import trafilatura
from trafilatura.settings import Document as TrafilaturaDocument

from svc_daemon.extract.formats.html_tables import HtmlBlock
from svc_daemon.extract.formats.html_walk import Walked

#: The main part is used only if it has more than this share of the page's text.
_MAIN_SHARE = 1 / 3
#: The main part has at least this share of what trafilatura found.
_FOUND_SHARE = 0.95
#: Longer pages skip trafilatura, which takes a second per million characters.
_ARTICLE_CHARACTERS = 2_000_000
#: Shorter blocks may be in an article and in a menu.
_UNIQUE_CHARACTERS = 25


def find_main_part(walked: Walked, markup: str) -> Sequence[HtmlBlock]:
    """Return the blocks of a page's main part: the smallest element with the text that trafilatura finds."""
    blocks = walked.blocks
    outside = [block for block in blocks if not block.in_menu] or blocks
    article: Any = None
    if len(markup) <= _ARTICLE_CHARACTERS:
        article = trafilatura.bare_extraction(markup, include_comments=False, include_links=True, favor_recall=True)
    body = article.body if isinstance(article, TrafilaturaDocument) else None
    found = "".join("".join(body.itertext()).split()) if body is not None else ""
    squeezed = ["".join(block.text.split()) for block in blocks]
    found_sizes = [
        len(text) if len(text) >= _UNIQUE_CHARACTERS and not block.in_menu and text in found else 0
        for text, block in zip(squeezed, blocks, strict=True)
    ]
    sums = [0]
    for size in found_sizes:
        sums.append(sums[-1] + size)
    fitting = [(start, end) for start, end in walked.extents if sums[end] - sums[start] >= sums[-1] * _FOUND_SHARE]
    if not sums[-1] or not fitting:
        return outside
    start, end = min(fitting, key=lambda extent: extent[1] - extent[0])
    main = [block for block in blocks[start:end] if not block.in_menu]
    # The page's main heading often stands before the part.
    headings = [block for block in blocks[:start] if block.kind == "heading" and block.level == 1 and not block.in_menu]
    if headings and not any(block.kind == "heading" and block.level == 1 for block in main):
        main = [headings[-1], *main]
    is_enough = sum(len(block.text) for block in main) > sum(len(block.text) for block in outside) * _MAIN_SHARE
    return main if is_enough else outside
