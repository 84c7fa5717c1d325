"""Every version of a notebook is read, with every output that its reader sees as text, in order."""

import json
from typing import Any

import pytest

from svc_daemon.core.text.chunking import Document
from tests.extract.readings import read


def read_cells(*cells: dict[str, Any], **metadata: Any) -> Document:
    return read(json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4}).encode(), "a.ipynb")


def with_output(**output: Any) -> dict[str, Any]:
    return {"cell_type": "code", "source": "run()", "metadata": {}, "outputs": [output]}


def shown(**data: Any) -> dict[str, Any]:
    return with_output(output_type="display_data", data={f"text/{form}": value for form, value in data.items()})


@pytest.mark.parametrize(
    ("cell", "text"),
    (
        (with_output(output_type="stream", name="stdout", text=["one\n", "two\n"]), "one\ntwo"),
        (with_output(output_type="stream", name="stderr", text="\x1b[33mwarned\x1b[0m\n"), "warned"),
        (with_output(output_type="stream", text=" 10%\r 50%\r100%\ndone\r\n"), "100%\ndone"),
        (with_output(output_type="stream", text="\x1b]8;;https://a.example\x1b\\link\x1b]8;;\x1b\\"), "link"),
        (shown(html=["<table><tr><th>bird</th>", "<td>7</td></tr></table>"], plain="bird 7 plain"), "bird | 7"),
        (shown(html="<script>x()</script><div></div>", plain="Chart()"), "Chart()"),
        (shown(html="<style>a{}</style><p>Seen</p><p hidden></p>"), "Seen"),
        (shown(latex="$\\frac{1}{2}$", plain="1/2"), "$\\frac{1}{2}$"),
        (shown(plain=["a\n", "b"]), "a\nb"),
        (with_output(output_type="execute_result", data={"application/json": {"a": "é"}}), '{"a": "é"}'),
        (
            with_output(output_type="error", ename="E", evalue="bad", traceback=["\x1b[0;31mE\x1b[0m: bad", "at 1"]),
            "E: bad\nat 1",
        ),
        (with_output(output_type="error", ename="KeyError", evalue="'wagtail'", traceback=[]), "KeyError: 'wagtail'"),
    ),
)
def test_output_is_read_as_it_is_shown(cell: dict[str, Any], text: str) -> None:
    first, output = read_cells(cell).blocks
    assert (first.text, output.kind, output.text) == ("```\nrun()\n```", "code", f"```\n{text}\n```")


def test_picture_is_not_named_by_its_class() -> None:
    cell = with_output(output_type="display_data", data={"image/png": "iVBOR", "text/plain": "<Figure size 640x480>"})
    assert "Figure" not in read_cells(cell).text


def test_words_of_a_drawing_are_read() -> None:
    drawing = "<svg><title>G</title><g><text>Start</text><text>Queue</text></g></svg>"
    cell = with_output(
        output_type="display_data", data={"image/svg+xml": [drawing], "text/plain": "<graphviz.Digraph>"}
    )
    assert read_cells(cell).blocks[-1].text == "```\nG Start Queue\n```"


def test_markdown_output_is_read_as_markdown_and_raw_cells_as_they_are() -> None:
    document = read_cells(shown(markdown="## Result\n\nIt is *7*."), {"cell_type": "raw", "source": "# no heading"})
    assert [(block.kind, block.headings) for block in document.blocks] == [
        *(("code", ()), ("heading", ("Result",)), ("paragraph", ("Result",)), ("code", ("Result",))),
    ]


def test_notebook_of_version_3_is_read() -> None:
    cells = [
        {"cell_type": "heading", "level": 2, "source": ["Study"]},
        {"cell_type": "markdown", "source": "About birds."},
        {
            "cell_type": "code",
            "input": ["s = '''\n", "```\n", "'''"],
            "outputs": [
                {"output_type": "stream", "stream": "stdout", "text": ["siskin\n"]},
                {"output_type": "pyout", "text": ["42"], "html": ["<b>forty</b><p>two</p>"]},
                {"output_type": "pyout", "prompt_number": 1, "text": "plain only"},
                {"output_type": "display_data", "png": "iVBOR", "text": ["<matplotlib.Figure>"]},
                {"output_type": "pyerr", "ename": "E", "evalue": "x", "traceback": ["\x1b[31mE: wagtail"]},
            ],
        },
    ]
    document = read(json.dumps({"nbformat": 3, "worksheets": [{"cells": cells}]}).encode(), "a.ipynb")
    texts = [block.text.strip("`\n") for block in document.blocks]
    assert texts == [
        "## Study",
        "About birds.",
        "s = '''\n```\n'''",
        "siskin",
        "forty\n\ntwo",
        "plain only",
        "E: wagtail",
    ]
    assert {(block.headings, block.line_start) for block in document.blocks} == {(("Study",), None)}


def test_broken_cell_costs_only_itself() -> None:
    document = read_cells(
        {"cell_type": "markdown", "source": "Kept."}, {"source": 1}, {"cell_type": "code", "source": 5}
    )
    assert (document.text, document.warnings) == ("Kept.", ("Cell 2 can't be read.", "Cell 3 can't be read."))


def test_title_of_the_notebook_is_its_own_or_its_first_heading() -> None:
    cell = {"cell_type": "markdown", "source": "# Heading\n\nText"}
    assert read_cells(cell, title="The title").title == "The title"
    assert read_cells(cell, title=7).title == read_cells(cell).title == "Heading"
