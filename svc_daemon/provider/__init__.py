"""The search provider: indexes and searches documents, behind one contract.

`contract` defines what every provider guarantees, and `errors` what it may raise. `embedded` is the built-in provider:
SQLite's FTS5, one index file per team. `milvus` uses a Milvus server that several machines share. Both use `rankings`
to order and score the chunks they find, and `texts` to prepare texts for storing. The state database decides which
sources exist and are ready; a provider only finds them. An index contains no original data: if it is lost, it can be
rebuilt from the stored files.
"""
