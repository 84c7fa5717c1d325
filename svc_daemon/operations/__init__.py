"""Operations that need more than one store call, or a policy. Each operation that writes is one transaction.

They take a `Context` (the process's resources) and a key (the caller), and contain no SQL and no HTTP. They raise
`ServiceError` for requests that they refuse.
"""
