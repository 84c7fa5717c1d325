"""The HTTP contract: names and shapes, and nothing that decides.

Both programs share `codes`, `headers`, `versions`, `proofs`, `file_names` and `faults`, which import no pydantic. The
models, one module a noun, are the daemon's side alone: it validates bodies and builds its responses with them, and its
OpenAPI document is made of them. The command line starts without pydantic and reads responses as the `Json` that they
are, so that it works with a daemon that is older or newer than itself.
"""

from typing import Any

#: A JSON object, as it was sent or received.
Json = dict[str, Any]
