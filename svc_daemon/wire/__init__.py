"""The HTTP contract: names and data formats, without any logic.

The daemon and the command line share `codes`, `headers`, `versions`, `proofs`, `file_names` and `field_errors`, which
don't import pydantic. The other modules have pydantic models, which only the daemon uses, to validate bodies, build
responses and generate its OpenAPI document. The command line reads responses as plain `Json`: it starts faster without
pydantic, and works with older and newer daemons.
"""

from typing import Any

#: A JSON object, as it was sent or received.
Json = dict[str, Any]
