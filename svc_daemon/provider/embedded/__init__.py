"""The built-in search provider: SQLite's FTS5, one index file per team.

With a file of its own, a team's searches don't depend on the documents of other teams, neither in speed nor in scores.
"""
