"""The provider that comes with the service: SQLite's FTS5, one index file per team.

One file per team because BM25 reads the postings of the whole table: nobody pays for another team's documents, and
no team's word counts show in another's scores. `provider` is the door, `files` opens and removes index files,
`schema` says what is in one, `documents`, `memberships` and `postings` write it, `searching` with `scopes` and
`counts` reads it, `failures` turns what SQLite raises into the contract's errors.
"""
