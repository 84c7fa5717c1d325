"""`svc search`: shows matching passages with their locations."""

import re
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from svc_cli.commands.invocations import (
    AgentOption,
    BucketsOption,
    Invocation,
    ModeOption,
    TimeoutOption,
    command,
    model_id,
    new_app,
)
from svc_cli.console import Console, clean
from svc_cli.errors import SvcError, UsageError
from svc_cli.exits import Exit
from svc_cli.render import place_of, table, width
from svc_daemon import paths

if TYPE_CHECKING:
    from svc_cli.client.api import Client

app = new_app()

#: Maximum number of shown lines of a passage.
PASSAGE_LINES = 3
#: Maximum width of a line without a terminal.
PLAIN_COLUMNS = 100
MOST_RESULTS = 50
DAY_S = 86_400

MostOption = Annotated[
    int | None,
    typer.Option(
        "-k",
        metavar="N",
        min=1,
        max=MOST_RESULTS,
        help="Show at most N results, 1 to 50.  [default: the limit of the agent, or 10]",
    ),
]
TagsOption = Annotated[
    list[str] | None, typer.Option(metavar="TAG", help="Search only sources with this tag; repeatable.")
]
ExplainOption = Annotated[
    bool, typer.Option("--explain", help="Show how each result was found and how its score was computed.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFlags:
    """The options of `search`."""

    words: Annotated[list[str], typer.Argument(metavar="QUERY", help="The words or the question to search for.")]
    bucket: BucketsOption = None
    agent: AgentOption = None
    k: MostOption = None
    mode: ModeOption = None
    tag: TagsOption = None
    explain: ExplainOption = False
    timeout: TimeoutOption = None


@command(
    app,
    "search",
    "svc search parental leave -b handbook",
    "svc search --mode keyword -k 3 exit code 141",
    "svc search parental leave --ndjson | jq -r .title",
)
def search(call: Invocation, flags: SearchFlags) -> Exit:
    """Search all buckets that your API key can read, or those given with -b.

    The query needs no quotation marks. Everything after `--` is part of it, even words that begin with a dash.
    """
    call.limit_time(flags.timeout)
    query = " ".join(flags.words)
    if not query.strip():
        raise UsageError("The query is empty.")
    # An agent has its own buckets, so ignore the setting.
    default = None if flags.agent else call.settings.get("bucket")
    buckets = flags.bucket or ([default] if default else [])
    most = call.settings.find("search.k", flags.k)
    if not 1 <= most.value <= MOST_RESULTS:
        raise UsageError(f"search.k is 1 to {MOST_RESULTS}, not {most.value} as {most.source} has it.")
    options: dict[str, Any] = {
        # Without a flag or setting, send no limit, so that the limit of the agent applies.
        **({} if most.source == "default" else {"max_num_results": most.value}),
        "mode": call.settings.get("search.mode", flags.mode),
        **({"agent": model_id(flags.agent)} if flags.agent else {}),
        **({"buckets": buckets} if buckets else {}),
        **({"tags": flags.tag} if flags.tag else {}),
        **({"explain": True} if flags.explain else {}),
    }
    with call.client() as client:
        page = client.search(query, **options)
        empty = [] if page["data"] else warn_of_emptiness(client)
        slugs: dict[str, str] = {}
        if call.console.is_text and page["data"] and len(buckets) != 1:
            with suppress(SvcError):  # the search has succeeded
                slugs = {bucket["id"]: bucket["slug"] for bucket in client.buckets(members=False)["buckets"]}
    for warning in [*(page.get("warnings") or []), *empty]:
        if call.console.is_verbose or is_new_today(call, str(warning)):
            call.console.warn(str(warning))
    for each in page.get("suggestions") or []:
        call.console.note(f"nothing has {clean(each['word'])!r}: did you mean {clean(each['instead'])!r}?")
    call.console.show_page(page, "data", lambda: render_page(call.console, page, slugs if len(slugs) > 1 else {}))
    return Exit.DONE


def is_new_today(call: Invocation, warning: str) -> bool:
    """Whether a warning was not shown today, whatever numbers are in it. Those that pass by themselves come often."""
    if "no vectors yet" not in warning:
        return True
    path = paths.state_dir(call.settings.environ) / "warned-of-vectors"
    try:
        shown = path.stat().st_mtime if path.is_file() else 0
        if time.time() - shown < DAY_S:
            return False
        paths.make_folder(path.parent)
        path.touch()
    except OSError:  # say it rather twice than never
        return True
    return True


def warn_of_emptiness(client: "Client") -> list[str]:
    """Return a warning if a search found nothing because there are no sources."""
    try:
        buckets = client.buckets(members=False)["buckets"]
    except SvcError:
        # The search has succeeded, so a failure here must not turn it into an error.
        return []
    if any(bucket["counts"]["total"] for bucket in buckets):
        return []
    return ["no bucket holds anything yet: `svc upload PATH -b BUCKET` puts files into one."]


def render_page(console: Console, page: Mapping[str, Any], slugs: Mapping[str, str]) -> str:
    """Render each result: title, location and bucket, with its URL and passage below. Equal passages are shown once."""
    if not page["data"]:
        return "nothing found."
    # With stems, `replaces` also matches `replaced`.
    words = re.findall(r"\w{3,}", page["query"].casefold())
    stems = {word if len(word) < 6 else word[: max(5, len(word) - 3)] for word in words}
    alike: dict[str, list[tuple[int, Mapping[str, Any]]]] = {}
    for number, result in enumerate(page["data"], 1):
        alike.setdefault(" ".join(result["text"].split()), []).append((number, result))
    blocks = []
    for (number, result), *others in alike.values():
        headings = " > ".join(clean(each) for each in result["location"].get("headings") or [])
        facts = f"{result['score']:.2f}  {result['source_id']}"
        below = [clean(result["source_url"])] if result.get("source_url") else []
        below += [console.paint(headings, "cyan")] if headings else []
        below += [f"may be outdated: {clean(result['stale_reason'])}"] if result.get("stale") else []
        below += _passage(console, result, stems)
        below += [f"also in {', '.join(filter(None, _named(each, slugs)))}" for _, each in others]
        if result.get("explain"):
            below += explanation(console, result["explain"]).splitlines()
        title, place = _named(result, slugs)
        head = head_of(console, f"{number}.", title, place, facts)
        blocks.append("\n".join([head, *(f"   {line}" for line in below)]))
    more = "\n\nthere is more: -k shows up to 50." if page.get("has_more") else ""
    return "\n\n".join(blocks) + more


def _named(result: Mapping[str, Any], slugs: Mapping[str, str]) -> tuple[str, str]:
    """Return the title of a result, and where it is: the page or lines, and the buckets."""
    buckets = ", ".join(slugs[each] for each in result["bucket_ids"] if each in slugs)
    places = [place_of(result["location"]), f"in {buckets}" if buckets else ""]
    return clean(result["title"] or result["filename"]), ", ".join(filter(None, places))


def head_of(console: Console, number: str, title: str, place: str, facts: str) -> str:
    """Render the heading of a passage, on two lines if the terminal is narrow."""
    behind = f", {place}" if place else ""
    room = console.width()
    is_long = room is not None and width(f"{number} {title}{behind}  {facts}") > room
    gap = "\n" + " " * (len(number) + 1) if is_long else "  "
    return f"{number} {console.paint(title, 'bold')}{behind}{gap}{console.paint(facts, 'dim')}"


def _passage(console: Console, result: Mapping[str, Any], stems: set[str]) -> list[str]:
    """Wrap the passage to the terminal's width, and return the lines that have the most words of the query.

    The words that were found are highlighted.
    """
    text, marks = _marked(result["text"], result.get("highlights") or [])
    found = {word.strip().casefold() for word in _runs(text, marks, lambda word, is_found: word if is_found else "")}
    columns = max(30, (console.width() or PLAIN_COLUMNS) - 6)
    lines = textwrap.wrap(text, columns, break_long_words=True)
    start = 0 if len(lines) <= PASSAGE_LINES else best_window(lines, found - {""} or stems, PASSAGE_LINES)
    shown, end = [], 0
    for number, line in enumerate(lines):
        begin = text.index(line, end)
        end = begin + len(line)
        if start <= number < start + PASSAGE_LINES:
            paint = lambda part, is_found: console.paint(part, "yellow") if is_found else part  # noqa: E731
            shown.append("".join(_runs(line, marks[begin:end], paint)))
    if start:
        shown[0] = f"… {shown[0]}"
    if start + PASSAGE_LINES < len(lines):
        shown[-1] += "…"
    return shown


def _marked(text: str, highlights: Sequence[Sequence[int]]) -> tuple[str, list[bool]]:
    """Return the text on one line and clean, and for each of its characters whether it is highlighted."""
    shown: list[str] = []
    marks: list[bool] = []
    ends = [0, *(end for span in highlights for end in span), len(text)]
    for number, (begin, end) in enumerate(pairwise(ends)):
        for character in clean(re.sub(r"\s", " ", text[begin:end])):
            if not character.isspace() or shown[-1:] not in ([], [" "]):
                shown.append(" " if character.isspace() else character)
                marks.append(number % 2 == 1)
    return "".join(shown), marks


def _runs(text: str, marks: Sequence[bool], show: Callable[[str, bool], str]) -> list[str]:
    """Call `show` for each longest part of the text that is highlighted, or that is not."""
    parts = groupby(zip(text, marks, strict=True), key=itemgetter(1))
    return [show("".join(character for character, _ in part), is_found) for is_found, part in parts]


def best_window(lines: Sequence[str], stems: set[str], size: int) -> int:
    """Find the `size` consecutive lines that contain the most stems. Returns the index of the first of them.

    Of several windows with the same lines found, it is the one in the middle, so that lines before and after are seen.
    """
    found = [{stem for stem in stems if stem in line.casefold()} for line in lines]
    counts = [len(set().union(*found[start : start + size])) for start in range(len(lines) - size + 1)]
    first = last = counts.index(max(counts))
    while counts[first] and last - first + 1 < size and counts[last + 1 : last + 2] == [counts[first]]:
        last += 1
    before = (size - 1) // 2
    return min(last, first + before) if first else max(0, last - before)


def explanation(console: Console, explain: dict[str, Any]) -> str:
    """Render a table of a passage's scores: by words, by meaning, and combined."""
    keyword, semantic, fused = explain["keyword"], explain["semantic"], explain["fused"]
    covers = f"covers {explain['coverage']:.0%} of the query"
    bm25 = f"bm25 {keyword['bm25']:.2f}" if keyword else ""
    rows = [("words", keyword["rank"] if keyword else None, bm25, covers)]
    if keyword and keyword.get("feedback") is not None:
        rows.append(("- feedback", None, f"{keyword['feedback']:.2f}", "words of the best passages"))
    for term in explain["terms"]:
        parts = f"in {', '.join(term['parts'])}" if term["parts"] else ""
        rows.append((f"- {clean(term['term'])}", None, f"idf {term['idf']:.2f}", parts))
    if semantic:
        rows.append(("meaning", semantic["rank"], f"cosine {semantic['cosine']:.3f}", clean(semantic["model"])))
    if explain.get("named"):
        rows.append(("name", None, "", "the query names the document"))
    if fused is not None:
        rows.append(("both", explain["rank"], f"fused {fused:.4f}", ""))
    return table(console, ("found by", "rank", "scored", ""), rows)
