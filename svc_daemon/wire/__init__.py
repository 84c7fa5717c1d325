"""The HTTP contract: names and data formats, without any logic.

Both programs share `codes`, `headers`, `versions`, `proofs`, `file_names` and `field_errors`, which import no pydantic.
Only the daemon uses the models, one module per noun: it validates bodies, builds responses and generates its OpenAPI
document with them. The command line starts without pydantic and reads responses as plain `Json`, so that it works with
older and newer daemons.
"""

from typing import Any

#: A JSON object, as it was sent or received.
Json = dict[str, Any]
