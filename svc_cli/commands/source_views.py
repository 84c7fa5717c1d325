"""How sources read: as rows of a table, and one in full."""

from collections.abc import Sequence
from typing import Any

from svc_cli.console import Console, clean
from svc_cli.render import fields, size, state_of

Json = dict[str, Any]


def source_rows(sources: Sequence[Json]) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Heads and rows of a table of sources; the column of reasons only where something failed."""
    heads: tuple[str, ...] = ("source", "state", "type", "size", "title")
    rows = [(each["id"], state_of(each), each["type"], size(each.get("size_bytes")), each["title"]) for each in sources]
    if not any(each.get("error") for each in sources):
        return heads, rows
    reasons = [each["error"]["code"] if each.get("error") else "" for each in sources]
    return (*heads[:-1], "why", "title"), [
        (*row[:-1], reason, row[-1]) for row, reason in zip(rows, reasons, strict=True)
    ]


def render_source(console: Console, source: Json) -> str:
    """One source in full; what it doesn't have is left out."""
    extraction = source.get("extraction") or {}
    error = source.get("error") or {}
    text = fields(
        console,
        [
            ("source", source["id"]),
            ("state", state_of(source)),
            ("error", f"{error['code']}: {error['message']}" if error else None),
            ("title", source["title"]),
            ("file", source["filename"]),
            ("type", f"{source['type']}, {source['content_type']}"),
            ("size", size(source.get("size_bytes"))),
            ("sha256", source.get("sha256")),
            ("buckets", source.get("bucket_ids")),
            ("tags", source.get("tags")),
            ("metadata", "  ".join(f"{key}={value}" for key, value in (source.get("metadata") or {}).items())),
            ("address", source.get("source_url")),
            ("replaces", source.get("replaces")),
            ("characters", extraction.get("characters")),
            ("chunks", extraction.get("chunks")),
            ("pages", extraction.get("pages")),
            ("language", extraction.get("language")),
            ("index", (source.get("provider") or {}).get("state")),
            ("created", source["created_at"]),
            ("updated", source["updated_at"]),
        ],
    )
    warnings = "".join(f"\nwarning: {clean(each)}" for each in source.get("warnings") or [])
    hint = f"\nhint: `svc source retry {source['id']}` queues it again." if error.get("retryable") else ""
    return text + warnings + hint
