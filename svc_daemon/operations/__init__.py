"""Verbs that need more than one store call, or a policy. Each that writes is one transaction.

They take a `Context` (what the process has) and a `Key` (who asks), speak no SQL and know no HTTP. What they refuse
is a `ServiceError`.
"""
