"""What all providers store of texts and ids, and in which form."""

from collections.abc import Iterable, Sequence


def storable(text: str) -> str:
    """Replace lone surrogates, which UTF-8 can't encode, by question marks; offsets don't change."""
    return text.encode(errors="replace").decode()


def embeddable(title: str, headings: Sequence[str], text: str) -> str:
    """Join the parts of a chunk to the text that is embedded; a part that repeats another is left out."""
    return "\n".join(filter(None, dict.fromkeys((title, *headings, text))))


def distinct(bucket_ids: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct ids, sorted: the form in which buckets are stored and compared."""
    return tuple(sorted(set(bucket_ids)))
