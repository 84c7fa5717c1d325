"""A heading is what a Markdown renderer shows as one; HTML in Markdown is read as HTML, and comments are hidden."""

import pytest

from svc_daemon.core.text.chunking import Document
from tests.extract.readings import read


def headings(document: Document) -> list[tuple[str, int | None]]:
    return [(block.headings[-1], block.line_start) for block in document.blocks if block.kind == "heading"]


@pytest.mark.parametrize(
    ("text", "expected"),
    (
        # Code is no heading, however it is marked.
        ("- a\n\n  ```sh\n  # no\n  ```\n# Yes\n", ["Yes"]),
        ("1. a\n\n   ~~~python\n   # no\n   ~~~\n\n# Yes", ["Yes"]),
        ("1. a\n   - b\n\n     ```\n# no, but the item has ended\n", ["no, but the item has ended"]),
        ("~~~~\n```\n# no\n~~~\n# no\n~~~~\n# Yes", ["Yes"]),
        ("```inline``` code\n\n# Yes\n\n```x``` more\n# Too\n", ["Yes", "Too"]),
        ("    # no\n\ttext\n\n# Yes\n", ["Yes"]),
        ("<pre>\n# no\n\n# no\n</pre>\n# Yes\n", ["Yes"]),
        ("<pre><code># no\n# no</code></pre>\n# Yes\n", ["Yes"]),
        # Comments and front matter are no headings either.
        ("<!-- # no\n\n# no\n-->\n# Yes <!-- x -->\n", ["Yes"]),
        ("---\ntitle: T\n# no\n---\n# Yes\n", ["Yes"]),
        ("+++\n# no\ntitle = 'T'\n+++\n# Yes\n", ["Yes"]),
        ("---\ntitle: T\n...\n# Yes\n", ["Yes"]),
        ("---\n\n# Yes\n\n---\n", ["Yes"]),
        ("[//]: # (# no)\n# Yes", ["Yes"]),
        ("<style>\n# no\n</style>\n# Yes", ["Yes"]),
        # What looks like one and is none.
        ("\\# no\n\n####### no\n\n#no\n\n# Yes", ["Yes"]),
        ("> quoted\n---\n\n- item\n---\n\n| a |\n---\n\n# Yes", ["Yes"]),
        # The words of a heading are those that are shown.
        ("# Yes #\n## C#\n# Yes ###\n", ["Yes", "C#", "Yes"]),
        ("# The `snake_case` of **every** _word_ {#anchor}\n", ["The snake_case of every word"]),
        ("# my_own_name and __init__ {: .class}\n", ["my_own_name and init"]),
        ("# [Link](https://a.example) [two][ref] ![logo](x.png) A\\*B[^1]\n", ["Link two logo A*B"]),
        ("# Q&amp;A &lt;T&gt; <https://a.example> <b>bold</b>\n", ["Q&A <T> https://a.example bold"]),
        ("Two\nlines\n===\n\nSub\n---\n", ["Two lines", "Sub"]),
        # HTML is read as HTML.
        ('<h1 align="center">\n  <img src="x" alt="Logo"> Name\n</h1>\n', ["Logo Name"]),
        ("<div>\n<h2>Deep <code>x</code></h2>\n</div>\n", ["Deep x"]),
    ),
)
def test_heading_is_what_a_renderer_shows_as_one(text: str, expected: list[str]) -> None:
    assert [title for title, _ in headings(read(text.encode(), "a.md"))] == expected


def test_lines_are_those_of_the_file_where_html_is_taken_out() -> None:
    text = "<!-- one\ntwo -->\n\n<p align=center\n   id=x>Words\n</p>\n\n<h2>A\nB</h2>\n\nText <br>more\n"
    document = read(text.encode(), "a.md")
    assert [(block.kind, block.text.strip(), block.line_start) for block in document.blocks] == [
        *(("paragraph", "Words", 5), ("heading", "## A B", 8), ("paragraph", "Text  more", 11)),
    ]


def test_what_a_renderer_does_not_show_is_hidden_with_its_line() -> None:
    text = (
        "# A\n\nSeen <!-- unseen one --> words\n\n<div hidden>unseen <b>two</b></div>\n"
        '<span style="display: none">unseen three</span>\n[comment]: <> (unseen four)\n'
        "<details><summary>Seen too</summary>\nAnd this\n</details>\n`<!-- code -->`\n<DEL>unseen five</DEL>\n"
    )
    document = read(text.encode(), "a.md")
    assert [(each.text, each.line) for each in document.hidden] == [
        *(("unseen one", 3), ("unseen two", 5), ("unseen three", 6), ("unseen four", 7)),
        ("unseen five", 12),
    ]
    assert "unseen" not in document.text
    assert all(words in document.text for words in ("Seen  words", "Seen too", "And this", "<!-- code -->"))


def test_struck_words_are_left_out_and_exponents_stay_apart_from_their_numbers() -> None:
    text = "The fee is <del>30</del> 45.\n\n2<sup>10</sup>, 10<SUP>-6</SUP>, m<sup>2</sup> and 2<sup>n</sup>\n"
    document = read(text.encode(), "a.md")
    assert [block.text for block in document.blocks] == ["The fee is  45.", "2^10, 10^-6, m2 and 2n"]
    assert [(each.text, each.reason) for each in document.hidden] == [("30", "struck out")]
    assert read(b"It costs ~~30~~ 45 for List<S>.\n", "a.md").text == "It costs ~~30~~ 45 for List<S>.\n"


@pytest.mark.parametrize(
    "text",
    (
        "Vec<String> and a < b > c, x<y>z",
        "<!-- never closed\n# A",
        "`unclosed <b> tick\n\ntext",
        "<pre>open",
        "<h1>open\n\ntext",
        "```\n<b>code</b>\n```",
        "    <b>code</b>\n",
        "List<int> <MyTag prop={1}/>",
    ),
)
def test_text_that_only_looks_like_html_is_kept(text: str) -> None:
    covered = "".join(block.text for block in read(text.encode(), "a.md").blocks)
    for word in (
        "String",
        "never",
        "closed",
        "unclosed",
        "tick",
        "text",
        "open",
        "code",
        "List",
        "MyTag",
        "prop",
        "int",
    ):
        assert (word in covered) == (word in text), word


def test_cells_of_html_tables_and_blocks_stay_apart() -> None:
    document = read(b"<table><tr><td>Pond</td><td>Marsh</td></tr></table>\n<ul><li>One</li><li>Two</li></ul>", "a.md")
    assert document.text.split() == ["Pond", "|", "Marsh", "One", "Two"]


def test_comments_of_mdx_are_hidden_only_in_mdx() -> None:
    text = b"{/* # no */}\n# Yes\n"
    assert headings(read(text, "a.mdx")) == [("Yes", 2)]
    assert read(text, "a.mdx").hidden[0].text == "# no"
    assert "no" in read(text, "a.md").text


@pytest.mark.parametrize(
    "odd", ("<!--", "`", "<pre>", "<h1>", "<b hidden>", "```\n", "<", "[a](", "# **", "- ", "\t- ", "|-")
)
def test_repeated_odd_markup_takes_linear_time(odd: str) -> None:
    assert read((odd * 20_000).encode() + b" end", "a.md").text.endswith("end")
