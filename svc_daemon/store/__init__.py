"""All SQL on the state database, and all access to blob files.

One module per kind of record. Its functions take the connection of a running transaction (from `database.write` or
`database.read`), do one thing, and make no decisions. Look-ups by an id or name from a request take the team's id too,
so that no team sees another's rows; later steps use only the id of the row that was found. The SQL uses named
parameters and the common subset of SQLite and PostgreSQL where possible.
"""
