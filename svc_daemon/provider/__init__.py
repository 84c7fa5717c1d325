"""The search provider: indexes and searches documents, behind one contract.

`contract` defines what every provider guarantees, and `errors` what it may raise. `embedded` is the built-in provider:
SQLite's FTS5, one index file per team. `milvus` is the one for several machines. What both make of ranked chunks is in
`rankings`, and how they store texts in `texts`. The state database decides which sources exist and are ready; a
provider only finds them. An index contains no original data: if it is lost, it can be rebuilt from the stored files.
"""
