"""Jupyter notebooks of all versions: Markdown cells, and code cells with what their outputs show, as code blocks."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from svc_daemon.core.text.chunking import Document
from svc_daemon.extract import documents
from svc_daemon.extract.builders import FlowDocument
from svc_daemon.extract.formats import Given
from svc_daemon.extract.formats.html.html import add_markup
from svc_daemon.extract.formats.text.markdown import read_markdown
from svc_daemon.extract.formats.text.texts import decode
from svc_daemon.wire.light.parsing import NestedTooDeeply, parse_json

_BACKTICKS = re.compile(r"`{3,}")
#: Colours and other commands for terminals.
_TERMINAL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
#: The text forms of an output, of which Jupyter shows the first that there is. Version 3 has the names without `text/`.
_FORMS = ("text/html", "text/markdown", "text/latex", "image/svg+xml", "text/plain", "application/json")


def read(given: Given) -> Document:
    """Convert the notebook to Markdown and read that. Raises ExtractionFailed if it is invalid."""
    text, warnings = decode(given.data, given.charset)
    try:
        notebook = parse_json(text)
        # Version 3 has its cells in worksheets.
        sheets = notebook.get("worksheets", [notebook])
        cells = [cell for sheet in sheets for cell in sheet["cells"]]
        metadata = notebook.get("metadata") or {}
    except NestedTooDeeply as error:
        raise documents.unreadable("The document is nested too deeply.") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise documents.unreadable("The file is not a Jupyter notebook.") from error
    parts: list[str] = []
    for number, cell in enumerate(cells, 1):
        try:
            parts += filter(str.strip, _cell_parts(cell))
        except (ValueError, KeyError, TypeError, AttributeError):
            warnings = (*warnings, f"Cell {number} can't be read.")
    document = read_markdown("\n\n".join(parts), warnings)
    # The Markdown's line numbers are not the file's.
    blocks = tuple(replace(block, line_start=None, line_end=None) for block in document.blocks)
    hidden = tuple(each._replace(line=None) for each in document.hidden)
    title = metadata.get("title") if isinstance(metadata, dict) else None
    return replace(
        document, blocks=blocks, hidden=hidden, title=title if title and isinstance(title, str) else document.title
    )


def _cell_parts(cell: Mapping[str, Any]) -> Iterator[str]:
    """Yield a cell and its outputs as Markdown."""
    source, kind = _joined(cell["source"] if "source" in cell else cell.get("input", "")), cell["cell_type"]
    if kind == "heading":
        yield f"{'#' * min(6, max(1, int(cell.get('level', 1))))} {' '.join(source.split())}"
    elif kind == "markdown":
        yield source
    elif source.strip():
        yield _fenced(source)
    for output in cell.get("outputs", ()):
        if output.get("traceback") or output["output_type"] in {"error", "pyerr"}:
            trace, reason = "\n".join(output.get("traceback", ())), f"{output.get('ename')}: {output.get('evalue')}"
            yield _printed(trace if _TERMINAL.sub("", trace).strip() else reason)
        elif output["output_type"] == "stream":
            yield _printed(_joined(output.get("text", "")))
        else:
            data = output.get("data") or {f"text/{form}": value for form, value in output.items()}
            yield from _shown(data)


def _shown(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield the richest form of an output that has text. A picture's other form is only its name."""
    forms = {**data, "text/plain": data.get("text/plain", data.get("text/text", ""))}
    for form in _FORMS:
        value = forms.get(form)
        if not value or (form == "text/plain" and any("image/" in each or each == "text/png" for each in data)):
            continue
        if form in {"text/html", "image/svg+xml"}:
            flow = FlowDocument()
            add_markup(flow, _joined(value))
            value = flow.finish().text
        text = (
            value
            if isinstance(value, str)
            else _joined(value)
            if isinstance(value, list)
            else json.dumps(value, ensure_ascii=False)
        )
        if text.strip():
            yield text if form == "text/markdown" else _printed(text)
            return


def _printed(text: str) -> str:
    """Put what a terminal would show between fences: no colours, and of a line that was overwritten its last state."""
    lines = _TERMINAL.sub("", text).replace("\r\n", "\n").split("\n")
    shown = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines).strip("\n")
    return _fenced(shown) if shown.strip() else ""


def _fenced(code: str) -> str:
    """Put code between fences longer than any run of backticks in it."""
    fence = "`" * (1 + max(map(len, _BACKTICKS.findall(code)), default=2))
    return f"{fence}\n{code}\n{fence}"


def _joined(lines: str | list[str]) -> str:
    return lines if isinstance(lines, str) else "".join(lines)
