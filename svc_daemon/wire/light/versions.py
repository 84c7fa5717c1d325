"""The version of this release, and the API versions that it supports.

This module imports nothing, so that `svc --version` is fast.
"""

VERSION = "0.1.0"

#: The package's name on PyPI, where the name `svc` belongs to another project.
DISTRIBUTION = "svc-knowledge"

#: The oldest API version that this release supports.
API_OLDEST = 1
#: The newest API version that this release supports.
API_NEWEST = 1
API_RANGE = f"{API_OLDEST}-{API_NEWEST}"
