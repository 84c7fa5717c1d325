"""The built-in search provider: SQLite's FTS5, one index file per team.

Each team has a file of its own, so documents of other teams affect neither the speed nor the scores of its searches.
"""
