"""Translates the store's statements, which both engines share, to what PostgreSQL takes."""

import re
from functools import lru_cache

#: A quoted text, or a named parameter.
_PARAMETER = re.compile(r"'[^']*'|:([a-z_]\w*)")
_REFERENCE = re.compile(r" REFERENCES \w+ \(\w+\)")
#: Statements that define columns.
_DEFINING = re.compile(r"\s*(CREATE|ALTER) TABLE\b")


@lru_cache(maxsize=1024)
def translate(statement: str) -> tuple[bytes, tuple[str, ...]]:
    """Return the statement with numbered parameters instead of named ones, and their names in the order of numbers."""
    numbers: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        name = match[1]
        return match[0] if name is None else f"${numbers.setdefault(name, len(numbers) + 1)}"

    if _DEFINING.match(statement):
        # Texts are compared and sorted by their bytes, as in SQLite; tables without a row id are SQLite's alone.
        statement = re.sub(r"\bTEXT\b", 'TEXT COLLATE "C"', statement).replace(" WITHOUT ROWID", "")
        # To check a reference, the server reads the row that it names, which puts each transaction in the way of those
        # that change that row's page. What the references promise is kept by SERIALIZABLE, and checked by `verify`.
        statement = _REFERENCE.sub("", statement)
    return _PARAMETER.sub(number, statement).encode(), tuple(numbers)
