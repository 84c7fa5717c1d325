"""`svc search`: what the buckets know, with file, page or line."""

import textwrap
from typing import Annotated, Any, Literal

import typer

from svc_cli.commands.options import Invocation, command, new_app
from svc_cli.console import Console, clean
from svc_cli.errors import UsageError
from svc_cli.exits import Exit
from svc_cli.render import cut, place_of

app = new_app()

#: Lines of a passage that are shown, and columns where there is no terminal to measure.
PASSAGE_LINES = 3
PLAIN_COLUMNS = 100


@command(app, "search")
def search(
    call: Invocation,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Words or a question.")],
    bucket: Annotated[
        list[str] | None,
        typer.Option("--bucket", "-b", metavar="BUCKET", help="Only here; may be repeated.  [SVC_BUCKET]"),
    ] = None,
    k: Annotated[int | None, typer.Option("-k", metavar="N", help="Most results, 1 to 50.  [default: 10]")] = None,
    mode: Annotated[
        Literal["hybrid", "keyword", "semantic"] | None, typer.Option(help="How to match.  [default: hybrid]")
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option(metavar="TAG", help="Only sources with this tag; may be repeated.")
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say how each result was found and scored.")] = False,
) -> Exit:
    """Search buckets, all of them where none is named."""
    if not query.strip():
        raise UsageError("The query is empty.")
    default = call.settings.get("bucket")
    buckets = bucket or ([default] if default else [])
    options: dict[str, Any] = {
        "max_num_results": call.settings.get("search.k", k),
        "mode": call.settings.get("search.mode", mode),
        **({"buckets": buckets} if buckets else {}),
        **({"tags": tag} if tag else {}),
        **({"explain": True} if explain else {}),
    }
    with call.client() as client:
        page = client.search(query, **options)
    for warning in page.get("warnings") or []:
        call.console.warn(str(warning))
    call.console.show(page, lambda: render_page(call.console, page))
    return Exit.DONE


def render_page(console: Console, page: dict[str, Any]) -> str:
    """Results as blocks: a line that says where, and the passage under it."""
    if not page["data"]:
        return "nothing found."
    blocks = [_block(console, number, result) for number, result in enumerate(page["data"], 1)]
    more = "\n\nthere is more: -k shows up to 50." if page.get("has_more") else ""
    return "\n\n".join(blocks) + more


def _block(console: Console, number: int, result: dict[str, Any]) -> str:
    title = clean(result["title"] or result["filename"])
    place = place_of(result["location"])
    headings = " > ".join(clean(each) for each in result["location"].get("headings") or [])
    head = f"{number}. {console.paint(title, 'bold')}{f', {place}' if place else ''}"
    facts = console.paint(f"  {result['score']:.2f}  {result['source_id']}", "dim")
    lines = [head + facts, *([f"   {console.paint(headings, 'cyan')}"] if headings else [])]
    lines += [f"   {line}" for line in _passage(console, result["text"])]
    if result.get("explain"):
        lines.append("   " + console.paint(_explanation(result["explain"]), "dim"))
    return "\n".join(lines)


def _passage(console: Console, text: str) -> list[str]:
    """The first lines of a passage, folded to the width of the terminal."""
    columns = max(30, (console.width() or PLAIN_COLUMNS) - 4)
    flat = " ".join(clean(text).split())
    lines = textwrap.wrap(flat, columns, break_long_words=True)
    if len(lines) <= PASSAGE_LINES:
        return lines
    return [*lines[: PASSAGE_LINES - 1], cut(f"{lines[PASSAGE_LINES - 1]}…", columns)]


def _explanation(explain: dict[str, Any]) -> str:
    return "  ".join(f"{key}={value}" for key, value in explain.items())
