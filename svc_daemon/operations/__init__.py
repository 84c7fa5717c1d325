"""Operations that need several calls of the store, or apply a rule. Each operation that writes is one transaction.

An operation gets a `Context` (the stores, the clock and other resources of the process) and the caller's API key. It
contains no SQL and no HTTP, and raises `ServiceError` if it refuses a request.
"""
