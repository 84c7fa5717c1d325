"""Prepares texts and ids for storing."""

from collections.abc import Iterable, Sequence


def storable(text: str) -> str:
    """Replace lone surrogates, which UTF-8 can't encode. Offsets don't change."""
    return text.encode(errors="replace").decode()


def embeddable(title: str, headings: Sequence[str], text: str) -> str:
    """Join a chunk's title, headings and text for the embedding model. Repeated parts are left out."""
    return "\n".join(filter(None, dict.fromkeys((title, *headings, text))))


def distinct(bucket_ids: Iterable[str]) -> tuple[str, ...]:
    """Return the ids, sorted and without duplicates."""
    return tuple(sorted(set(bucket_ids)))
