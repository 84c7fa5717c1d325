"""The HTTP contract between daemon and clients: names and data formats.

Both sides share `codes`, `headers`, `versions`, `proofs`, `file_names` and `field_errors`. The other modules have
pydantic models for the daemon only. The command line starts faster without pydantic, and works with older and newer
daemons because it checks no response. Its types in `svc_cli.client.types` are generated from the models.
"""

from collections.abc import Mapping
from typing import Any

#: A JSON object.
Json = dict[str, Any]
#: A JSON object that is only read: a dict or a TypedDict.
JsonMapping = Mapping[str, Any]
