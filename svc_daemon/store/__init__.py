"""All SQL on the state database, and all access to blob files.

There is one module per kind of record. Its functions take the connection of a running transaction (from
`database.write` or `database.read`) and only read or write rows; the callers make the decisions. A function that looks
up an id or name from a request also takes the team's id, so that no team sees another's rows. Functions that are called
with the id of a row that was already looked up don't need the team's id. The SQL uses named parameters and, where
possible, only what SQLite and PostgreSQL have in common.
"""
