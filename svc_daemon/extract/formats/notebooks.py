"""Jupyter notebooks: Markdown cells, and code cells with their text output as code blocks."""

import re
from dataclasses import replace

from svc_daemon.core.text.chunking import Document
from svc_daemon.extract import documents
from svc_daemon.extract.formats import Given
from svc_daemon.extract.formats.markdown import read_markdown
from svc_daemon.extract.formats.texts import decode
from svc_daemon.wire.parsing import NestedTooDeeply, parse_json

_BACKTICKS = re.compile(r"`{3,}")


def read(given: Given) -> Document:
    """Convert the notebook to Markdown and read that. Raises ExtractionFailed if it is invalid."""
    text, warnings = decode(given.data, given.charset)
    parts: list[str] = []
    try:
        for cell in parse_json(text)["cells"]:
            source = _joined(cell.get("source", ""))
            if cell["cell_type"] != "code":
                parts.append(source)
                continue
            outputs = [
                output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell.get("outputs", ())
            ]
            parts += map(_fenced, filter(str.strip, [source, *map(_joined, outputs)]))
    except NestedTooDeeply as error:
        raise documents.unreadable("The document is nested too deeply.") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise documents.unreadable("The file is not a Jupyter notebook of version 4.") from error
    document = read_markdown("\n\n".join(parts), warnings)
    # The Markdown's line numbers are not the file's.
    blocks = tuple(replace(block, line_start=None, line_end=None) for block in document.blocks)
    return replace(document, blocks=blocks)


def _fenced(code: str) -> str:
    """Put code between fences longer than any run of backticks in it."""
    fence = "`" * (1 + max(map(len, _BACKTICKS.findall(code)), default=2))
    return f"{fence}\n{code}\n{fence}"


def _joined(lines: str | list[str]) -> str:
    return lines if isinstance(lines, str) else "".join(lines)
