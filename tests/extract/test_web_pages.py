"""Pages from the web: their main part whole, with every word and heading, and without menus."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from svc_daemon.extract.child_limits import CageLimits
from svc_daemon.extract.extractors import Extractor
from svc_daemon.extract.formats import Given
from svc_daemon.extract.formats.html.html import read as read_html
from tests import samples
from tests.extract.readings import document_at, exact


def read_page(markup: str | bytes) -> Any:
    """Read a page from the web."""
    data = markup.encode() if isinstance(markup, str) else markup
    return exact(read_html(Given(data=data, filename="", content_type="text/html", limits=CageLimits(), is_page=True)))


MAIN = "".join(f"<p>The {colour} quay was built of grey stone, which took the town years.</p>" for colour in "abcd")
AROUND = (
    "<nav><a href='/'>Home</a></nav>{}<aside><h2>Related</h2><ul><li><a href='/1'>One</a><li>Two</ul></aside>"
    "<footer>All rights reserved</footer>"
)


@pytest.mark.parametrize(
    ("inner", "words"),
    (
        ("<table><tr><td>Day<td><ul><li>open</li><li>shut</li></ul></table>", ["open", "shut"]),
        ("<aside>Mind the gap</aside>", ["Mind the gap"]),
        ("<section><h3>Rules</h3><p>Few.</p><footer>By Ada</footer></section>", ["Rules", "By Ada"]),
        ("<figure><img alt='Pier'><figcaption>The pier</figcaption></figure>", ["Pier", "The pier"]),
        ("<details><summary>More</summary>Less</details>", ["More", "Less"]),
        ("<h2>One</h2><ul><li>a<ul><li>b</ul></ul><h2>Two</h2><ol><li>c</ol>", ["One", "Two", "b", "c"]),
    ),
)
def test_main_part_of_a_web_page_loses_no_word_and_no_heading(inner: str, words: list[str]) -> None:
    page = f"<html><body>{AROUND.format(f'<main><h1>Quay</h1>{MAIN}{inner}{MAIN}</main>')}</body></html>"
    document = read_page(page)
    assert document.text.startswith("Quay\n\n")
    assert [word for word in words if word not in document.text] == []
    assert [word for word in ("Home", "Related", "All rights reserved") if word in document.text] == []
    assert document.warnings == ()


ONE = "<p>The pump moves clean water from a well into the house, and switches itself off.</p>"
DATA = "<h2>Data</h2><table><tr><th>Power<td>800 W<tr><th>Price<td>149 euros</table>"
TEASERS = "".join(f"<div><h3><a href='/{name}'>The {name} pump</a></h3></div>" for name in ("old", "new", "big", "odd"))


@pytest.mark.parametrize(
    ("inner", "words"),
    (
        (f"<main><h1>Pump</h1><div>{ONE}{ONE}</div><div>{DATA}</div></main>", ["800 W", "149 euros"]),
        (f"<div role=main><h1>Pump</h1><div>{ONE}</div><div>{DATA}</div>{TEASERS}</div>", ["800 W", "149 euros"]),
        (f"<article><h1>Soup</h1>{ONE}<ul><li>2 onions</ul><ol><li>Chop.<li>Fry.</ol></article>", ["2 onions", "Fry."]),
        (f"<div><h1>Short</h1><p>Fee: 12 euros.</p>{ONE}<p>No.</p></div>", ["Fee: 12 euros.", "No."]),
        (f"<div><h3>Why?</h3><p>So.</p></div><div><h3>When?</h3>{ONE}</div><h3>Who?</h3>Me.", ["So.", "When?", "Me."]),
        (f"<div><h2>Write</h2>{ONE}</div><div><h2>Address</h2><p>Quay Street 5</p></div>", ["Write", "Quay Street 5"]),
        (f"<section>{ONE}</section><section><p>Mon 9-17</p></section><section>Quay 5</section>", ["9-17", "Quay 5"]),
        (
            "".join(f"<div><h3><a href=/{n}>Pump {n}</a></h3><p>{n}0 euros</p></div>" for n in range(1, 7)) + ONE,
            ["Pump 2", "20 euros", "60 euros"],
        ),
        (f"<main>{ONE}<div class=social-insurance>9.3 %</div><p id=related-costs>5 euros</main>", ["9.3 %", "5 euros"]),
        ("<main><p>送料は五百円です。</p><p>Shipping costs five hundred yen in all of Japan.</p></main>", ["五百円"]),
        (f"<div><p>送料は、どこでも、五百円です。</p></div><div>{ONE}</div>", ["五百円"]),
    ),
)
def test_short_texts_of_the_main_part_are_read(inner: str, words: list[str]) -> None:
    document = read_page(f"<html><body>{AROUND.format(f'<div>{inner}</div>')}</body></html>")
    assert [word for word in words if word not in document.text] == []
    assert [word for word in ("Home", "Related", "All rights reserved") if word in document.text] == []


@pytest.mark.parametrize(
    "beside",
    (
        "<div class=sidebar><p>Open from 9 to 5.</p></div>",
        "<div id=comments><p>I liked it.</p></div>",
        "<div id=page-footer><p>By us.</p></div>",
        "<div role=dialog><p>We use cookies.</p></div>",
        "<div><a href='/'>Home</a> <a href='/a'>About</a> <a href='/s'>Shop</a> <a href='/c'>Cart</a></div>",
        TEASERS,
    ),
)
def test_main_part_does_not_grow_by_what_is_beside_it(beside: str) -> None:
    document = read_page(f"<html><body>{beside}<div><h1>Pump</h1>{ONE}<p>Fee: 12 euros.</p></div></body></html>")
    assert document.text.startswith("Pump\n\n")
    assert document.text.endswith("Fee: 12 euros.")


def test_main_part_has_no_advertisements_comments_and_links_to_share_it() -> None:
    extras = "".join(f"<div class='{name}'><p>Extra</p></div>" for name in ("shareButtons", "x ad-slot", "RelatedNews"))
    inner = f"<div>{ONE}</div><p class=shared-costs>Fee: 12 euros.</p>{extras}<div id=post_comments>Extra</div>"
    document = read_page(f"<html><body>{AROUND.format(f'<main><h1>Pump</h1>{inner}</main>')}</body></html>")
    assert document.text.endswith("Fee: 12 euros.")


def test_web_page_keeps_its_heading_and_no_unrelated_one() -> None:
    for around in (
        "<div>{}</div>",
        "<article>{}</article>",
        "<header><h1>Shop</h1></header><div>{}</div>",
        "<nav><h1>Menu</h1></nav><div><div>{}</div></div>",
    ):
        document = read_page(f"<html><body>{around.format(f'<h1>Quay</h1>{MAIN}')}</body></html>")
        assert document.blocks[-1].headings == ("Quay",), around
        assert "Menu" not in document.text


def test_web_page_of_which_little_is_read_gives_a_warning() -> None:
    links = "".join(f"<li><a href='/{number}'>Link {number}</a>" for number in range(40))
    page = f"<html><body><div><ul>{links}</ul></div><article><h1>Quay</h1>{MAIN}</article></body></html>"
    document = read_page(page)
    assert "Link 7" not in document.text
    assert document.warnings == ("Only the main part of the page was read, 48 % of the text outside of its menus.",)
    assert read_page(page.replace("<div>", "<nav>").replace("</div>", "</nav>")).warnings == ()


@pytest.mark.anyio
async def test_page_from_the_web_is_told_from_a_file(unlimited: Extractor, tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    path.write_text(f"<html><body>{AROUND.format(f'<main><h1>Quay</h1>{MAIN}</main>')}</body></html>")
    file = document_at(path)
    assert "Related" in (await unlimited.extract(file)).text
    assert "Related" not in (await unlimited.extract(replace(file, is_page=True))).text


def test_web_page_with_only_a_menu_is_read_as_the_menu() -> None:
    assert read_page("<html><body><nav><a href='/'>Home</a> Shop</nav></body></html>").text == "Home Shop"


def test_web_page_without_a_main_part_is_read_without_its_menu() -> None:
    rows = "".join(f"<tr><td>Port {number}<td>Depth {number}<br>metres</tr>" for number in range(300))
    document = read_page(samples.make_html(f"<dl><dt>Term<dd>Meaning</dl><table>{rows}</table>"))
    assert all(f"Port {number} | Depth {number} metres" in document.text for number in range(300))
    assert "Meaning" in document.text
    assert "Shop" not in document.text


LOGIN = "<h1>Log in</h1><form>Name <input name=n> Password <input type=PassWord></form>"


@pytest.mark.parametrize(
    ("markup", "words"),
    (
        (f"<body>{LOGIN}", ["asks for a password"]),
        (f"<body>{ONE}{LOGIN.replace('<form', '<form hidden style=display:none')}", []),
        (f"<body>{LOGIN}<article><h1>Quay</h1>{MAIN}{MAIN}</article>", []),
        ("<body><div id=app>Loading...</div><script src=a.js></script>", ["without its scripts"]),
        ("<body><p>Closed on Monday.</p>", []),
        ("<meta http-equiv=Refresh content='0; URL=/new'><body>This page has moved.", ["not read: /new"]),
        (f"<meta http-equiv=refresh content='900; url=/now'><body>{ONE}", []),
        (f"<meta http-equiv=refresh content=5><body>{ONE}", []),
    ),
)
def test_web_page_that_may_be_another_than_is_meant_gives_a_warning(markup: str, words: list[str]) -> None:
    warnings = read_page(markup).warnings
    assert len(warnings) == len(words)
    assert all(word in warning for word, warning in zip(words, warnings, strict=True))
