"""The HTTP contract: names and data formats, without any logic.

The daemon and the command line share `codes`, `headers`, `versions`, `proofs`, `file_names` and `field_errors`, which
don't import pydantic. The other modules have pydantic models, which only the daemon uses, to validate bodies, build
responses and generate its OpenAPI document. The command line reads responses without checking them: it starts faster
without pydantic, and works with older and newer daemons. Their types, in `svc_cli.client.types`, are made from these.
"""

from collections.abc import Mapping
from typing import Any

#: A JSON object, as it was sent or received.
Json = dict[str, Any]
#: A JSON object that is only read: a dict, or an answer with a type of its own.
JsonMapping = Mapping[str, Any]
