"""The HTTP contract between daemon and clients: names and data formats.

Requests are pydantic models, which validate them. Answers are TypedDicts: the daemon builds dicts, shows the types in
the OpenAPI document, and its tests validate every answer. The command line starts faster without pydantic, so it
imports these modules for type checkers only; when it runs, it needs those of `light`, and only exports need more.
"""

from collections.abc import Mapping
from typing import Any

#: A JSON object.
Json = dict[str, Any]
#: A JSON object that is only read: a dict or a TypedDict.
JsonMapping = Mapping[str, Any]
