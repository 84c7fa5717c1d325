"""The only SQL about state and the only blob files.

One file per noun. Its functions take the connection of a running transaction (`database.write` and `database.read` give
it), do one thing, and decide nothing. Every query about a team's things takes the team's id. The SQL is plain: what
SQLite and PostgreSQL both take, with named parameters.
"""
