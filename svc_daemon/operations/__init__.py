"""The daemon's operations, such as storing a file or answering a question.

They contain no SQL and no HTTP code. They raise `ServiceError` to refuse a request.
"""
