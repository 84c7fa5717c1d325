"""The built-in search provider: SQLite's FTS5, one index file per team.

Each team has its own file, because BM25 reads the word lists (postings) of a whole table. In separate files, the
documents of other teams neither slow down a search nor affect its scores.

`provider` implements the contract, `files` opens and removes index files, and `schema` defines their tables. `packing`
converts a document to rows, `writing` composes the `steps` that store, change and remove it, and `documents`,
`memberships`, `postings` and `embeddings` each own some of the tables. `searching` finds chunks with `scopes`, `counts`
and `bm25`. `failures` converts SQLite's exceptions to the contract's.
"""
