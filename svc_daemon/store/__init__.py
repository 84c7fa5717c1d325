"""All SQL on the state database, and all access to blob files.

Each module holds one kind of record. Its functions run in the caller's transaction and make no decisions. A function
that looks up an id or name from a request also takes the team's id, so that no team sees another's rows. The SQL uses
what SQLite and PostgreSQL have in common.
"""
