"""Operations that need several calls of the store, or apply a rule. Each write is one transaction.

An operation takes a `Context` and often the caller's API key. It contains no SQL and no HTTP. It raises `ServiceError`
to refuse a request.
"""
