"""Renders sources, and writes their stored bytes to standard output or a file."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from svc_cli.console import Console, clean, is_terminal
from svc_cli.errors import UsageError
from svc_cli.render import certainty, counted, duration, fields, place_of, scan_progress, size, state_of, table
from svc_cli.transfer.downloads import checked, writing
from svc_daemon.wire import JsonMapping
from svc_daemon.wire.light.urls import normal_url

if TYPE_CHECKING:
    from svc_cli.client.api import Client

#: Minimum width for a table with all columns.
WIDE = 80


def render_sources(console: Console, sources: Sequence[JsonMapping], *, is_sorted: bool = False) -> str:
    """Render a table of sources, failed ones first unless `is_sorted`.

    Reasons are shown only for failed sources, type and size only on a wide terminal.
    """
    ordered = sources if is_sorted else sorted(sources, key=lambda source: source.get("status") != "failed")
    has_room = (console.width() or WIDE) >= WIDE
    columns: dict[str, list[Any]] = {
        "source": [source["id"] for source in ordered],
        "state": [state_of(source) for source in ordered],
    }
    if has_room:
        columns["type"] = [source["type"] for source in ordered]
        columns["size"] = [size(source.get("size_bytes")) for source in ordered]
    if any(source.get("error") for source in ordered):
        columns["why"] = [(source.get("error") or {}).get("code") for source in ordered]
    if any(source.get("fetched_at") for source in ordered):
        columns["age"] = [age_of(source) for source in ordered]
    columns["title"] = [source["title"] for source in ordered]
    return table(console, tuple(columns), list(zip(*columns.values(), strict=True))) if sources else ""


def age_of(source: JsonMapping) -> str:
    """Return how long ago a source was fetched from its URL, such as `3 d`, and whether it could not be refreshed."""
    from datetime import UTC, datetime

    if not source.get("fetched_at"):
        return ""
    age_s = (datetime.now(UTC) - datetime.fromisoformat(source["fetched_at"])).total_seconds()
    return duration(max(age_s, 0)) + (" stale" if (source.get("refresh") or {}).get("error") else "")


def render_failures(console: Console, groups: Sequence[JsonMapping]) -> str:
    """Render how many sources failed for which reason."""
    heads = ("failed", "retry helps", "code", "for example")
    rows = [(each["count"], each["retryable_count"] or "no", each["code"], each["message"]) for each in groups]
    return table(console, heads, rows, fold=True) if rows else "none failed."


def preview_retry(failures: JsonMapping, codes: Collection[str] | None) -> JsonMapping:
    """Return what a retry of these failed sources would answer."""
    meant = [group for group in failures["groups"] if not codes or group["code"] in codes]
    queued = {group["code"]: group["retryable_count"] for group in meant if group["retryable_count"]}
    rest = {group["code"]: group["count"] - group["retryable_count"] for group in meant}
    return {
        "object": "bucket.retry",
        "bucket_id": failures["bucket_id"],
        "queued": sum(queued.values()),
        "queued_by_code": queued,
        "not_helped": {code: count for code, count in rest.items() if count},
    }


def render_retry(answer: JsonMapping, *, is_dry: bool) -> str:
    """Render how many failed sources were queued again, and how many another try can't help."""

    def list_codes(counts: JsonMapping) -> str:
        return ", ".join(f"{count} {clean(code)}" for code, count in counts.items())

    lines = [f"{'would queue' if is_dry else 'queued'} {counted(answer['queued'], 'source')} again"]
    lines[0] += f" ({list_codes(answer['queued_by_code'])})" if answer["queued"] else ""
    if answer["not_helped"]:
        lines.append(f"another try does not help: {list_codes(answer['not_helped'])}")
    return "\n".join(lines)


def redirect_of(source: JsonMapping) -> str | None:
    """Return the URL that the source's content came from, if it is another than that of the source."""
    url, final = source.get("source_url"), source.get("final_url")
    return final if url and final and normal_url(final) != normal_url(url) else None


def render_source(console: Console, source: JsonMapping) -> str:
    """Render the fields of a source that are not empty."""
    extraction = source.get("extraction") or {}
    error, refresh, shortage = (source.get(name) or {} for name in ("error", "refresh", "waits_for"))
    text = fields(
        console,
        [
            ("source", source["id"]),
            ("state", state_of(source)),
            ("error", f"{error['code']}: {error['message']}" if error else None),
            ("waits for", f"{shortage['message']} It continues automatically." if shortage else None),
            ("scan", _scan_of(source)),
            ("title", source["title"]),
            ("file", source["filename"]),
            ("type", f"{source['type']}, {source['content_type']}"),
            ("size", size(source.get("size_bytes"))),
            ("sha256", source.get("sha256")),
            ("buckets", source.get("bucket_ids")),
            ("tags", source.get("tags")),
            ("metadata", "  ".join(f"{key}={value}" for key, value in (source.get("metadata") or {}).items())),
            *(("address", source.get("source_url")), ("redirects to", redirect_of(source))),
            ("fetched", f"{source['fetched_at']} ({age_of(source)})" if source.get("fetched_at") else None),
            ("refresh", _schedule_of(refresh)),
            ("stale", _why_stale(refresh)),
            ("replaces", source.get("replaces")),
            ("characters", extraction.get("characters")),
            ("chunks", extraction.get("chunks")),
            ("pages", extraction.get("pages")),
            ("language", extraction.get("language")),
            ("own title", extraction.get("title")),
            ("parts", "  ".join(f"{kind}={number}" for kind, number in (extraction.get("parts") or {}).items())),
            ("hidden", f"{extraction['hidden']} characters" if extraction.get("hidden") else None),
            ("index", (source.get("provider") or {}).get("state")),
            ("created", source["created_at"]),
            ("updated", source["updated_at"]),
        ],
    )
    text += "".join(f"\nwarning: {clean(each)}" for each in source.get("warnings") or [])
    hint = f"\nhint: `svc source retry {source['id']}` queues it again." if error.get("retryable") else ""
    return text + hint


def render_text(answer: JsonMapping) -> str:
    """Render the extracted text."""
    return _cleaned(answer["text"])


def render_passages(answer: JsonMapping) -> str:
    """Render the passages of a text, each with its id and place."""
    blocks = []
    for chunk in answer["chunks"]:
        headings = " > ".join(chunk["location"].get("headings") or [])
        place = ", ".join(filter(None, (place_of(chunk["location"]), headings)))
        blocks.append(f"-- {chunk['chunk_id']}  {clean(place)}\n{_cleaned(chunk['text'])}")
    return "\n\n".join(blocks)


def render_hidden(answer: JsonMapping) -> str:
    """Render what no reader of the document sees."""
    pieces = []
    for piece in answer.get("hidden", []):
        named = f"page {piece['page']}" if piece["page"] else f"line {piece['line']}" if piece["line"] else ""
        head = ", ".join(filter(None, (named, clean(piece["reason"]))))
        pieces.append(f"-- {head}\n{_cleaned(piece['text'])}")
    return "\n\n".join(pieces)


def _cleaned(text: str) -> str:
    return "\n".join(clean(line) for line in text.rstrip("\n").split("\n"))


def _scan_of(source: JsonMapping) -> str | None:
    """Say how far the recognition of a source's text is, or how certain it is; None if it is no scan."""
    if "pages_total" in source.get("progress", ()):
        return scan_progress(source["progress"])
    pages = (source.get("extraction") or {}).get("recognized_pages")
    return (
        f"{counted(len(pages), 'page')} recognised, at least {certainty(min(pages.values()))} certain"
        if pages
        else None
    )


def _schedule_of(refresh: JsonMapping) -> str | None:
    """Say how often a source is fetched again, when next, and whether it is deleted if its URL is gone."""
    if not refresh:
        return None
    deleted = ", deleted if it is gone" if refresh["on_gone"] == "delete" else ""
    return f"every {duration(refresh['every_seconds'])}, next {refresh['next_at']}{deleted}"


def _why_stale(refresh: JsonMapping) -> str | None:
    """Say why the last refresh failed, how often in a row, and whether the page is gone; None if it did not."""
    if not refresh.get("error"):
        return None
    gone = "the page is gone; " if refresh["gone"] else ""
    return f"{gone}{counted(refresh['failures'], 'failure')} in a row: {refresh['error']['message']}"


def retry_scans(client: "Client", bucket: str | None, *, is_dry: bool) -> JsonMapping:
    """Retry what failed because no text was recognised, in a bucket or in all. Raises UsageError if it would again."""
    state = client.limits()["ocr"]
    if state["state"] != "ready":
        raise UsageError("The service reads no scans.", hint=state["message"])
    slugs = [bucket] if bucket else [each["slug"] for each in client.buckets(members=False)["buckets"]]
    pages = (page for slug in slugs for page in client.source_pages(slug, {"status": "unread_scan"}))
    # A source may be in several buckets.
    found = {
        each["id"]: each["error"]["code"] if each["error"] else "" for page in list(pages) for each in page["sources"]
    }
    for source_id in () if is_dry else found:
        client.retry_source(source_id)
    counts = {"queued": len(found), "queued_by_code": Counter(found.values()), "not_helped": {}}
    return {"object": "scans.retry", **counts, "source_ids": list(found)}


def send_content(console: Console, source: JsonMapping, blocks: Iterable[bytes]) -> None:
    """Write the bytes to standard output. Raises UsageError if that is a terminal, and the bytes are not text."""
    if not is_terminal(console.out):
        for block in checked(source, blocks):
            console.write_bytes(block)
        return
    try:
        content = b"".join(checked(source, blocks)).decode()
    except UnicodeDecodeError:
        content = "\0"
    if "\0" in content:
        raise UsageError(
            f"{source['title']} is not text, and standard output is a terminal.", hint="add -o FILE, or use a pipe."
        )
    console.print("\n".join(clean(line) for line in content.splitlines()))


def save_content(output: str, source: JsonMapping, blocks: Iterable[bytes]) -> None:
    """Write the bytes to a file, which is replaced at the end, or directly to a device or pipe."""
    with writing(output) as file:
        file.writelines(checked(source, blocks))
