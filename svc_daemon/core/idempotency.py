"""Idempotency keys, and the fingerprints by which they tell a repeated request from another.

The state database has a row, with the response, for each key whose request was executed:

    no row                                  new       execute; the changes and the row are committed together
    row, same route, same fingerprint       replay    the stored response, status 200, `Idempotent-Replayed: true`
    row, same route, no fingerprint         replay    URL imports, whose bodies are not compared
    row, other route or fingerprint         conflict  status 409, nothing is done

A fingerprint is a hash of the request's content. A refused request leaves no row.
"""

import hashlib
import json
from typing import Any

#: A request's route, such as `POST /v1/buckets`, and its fingerprint; None if the idempotency key alone identifies it.
Identity = tuple[str, str | None]


def is_key(text: str, max_characters: int) -> bool:
    """Return whether the text is a valid key: one or more visible ASCII characters."""
    return 1 <= len(text) <= max_characters and all("!" <= character <= "~" for character in text)


def fingerprint(*parts: Any) -> str:
    """Return the SHA-256, in hex, of the canonical JSON of the parts."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def is_repeat(request: Identity, stored: Identity) -> bool:
    """Return whether a request repeats the stored one with the same idempotency key. Otherwise, it is a conflict."""
    return request[0] == stored[0] and request[1] in (None, stored[1])
