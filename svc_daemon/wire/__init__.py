"""The HTTP contract between daemon and clients: names and data formats.

The daemon and the command line share `codes`, `headers`, `versions`, `proofs`, `file_names` and `field_errors`, which
don't import pydantic. The other modules have pydantic models, which only the daemon uses, to validate bodies, build
responses and generate its OpenAPI document. The command line reads responses without checking them: it starts faster
without pydantic, and works with older and newer daemons. The command line's types of responses, in
`svc_cli.client.types`, are generated from these models.
"""

from collections.abc import Mapping
from typing import Any

#: A JSON object that was received or will be sent.
Json = dict[str, Any]
#: A JSON object that is only read: a dict, or a response with a TypedDict of its own.
JsonMapping = Mapping[str, Any]
