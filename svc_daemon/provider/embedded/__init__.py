"""The built-in search provider: texts and vectors in SQLite, postings in Tantivy, one index per team.

Each team has a file of its own, so documents of other teams affect neither the speed nor the scores of its searches.
"""
