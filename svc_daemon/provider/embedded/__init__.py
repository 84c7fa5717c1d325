"""The provider that comes with the service: SQLite's FTS5, one index file per team.

One file per team because BM25 reads the postings of the whole table: no team pays for another's documents, and
no team's word counts show in another's scores.

`provider` has the contract's verbs and `files` opens and removes index files; `schema` is what one holds. `packing`
makes a document into rows, `writing` composes the `steps` that put, change and remove it, and `documents`,
`memberships`, `postings` and `embeddings` each own some of the tables. `searching` with `scopes`, `counts` and `bm25`
finds. `failures` turns what SQLite raises into the contract's errors.
"""
