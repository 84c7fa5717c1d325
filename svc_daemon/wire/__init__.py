"""The HTTP contract between daemon and clients: names and data formats.

Most modules have pydantic models for the daemon. The command line starts faster without pydantic, so it uses types that
are generated from the models (`svc_cli.client.types`).
"""

from collections.abc import Mapping
from typing import Any

#: A JSON object.
Json = dict[str, Any]
#: A JSON object that is only read: a dict or a TypedDict.
JsonMapping = Mapping[str, Any]
