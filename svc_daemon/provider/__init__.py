"""Search providers, which index and search documents. All have the same interface (see `contract`).

`embedded` is the built-in provider: SQLite and Tantivy, one index per team. `cluster.milvus` uses a Milvus server
that several machines share. An index contains no original data, so it can always be rebuilt from the stored files.
"""
