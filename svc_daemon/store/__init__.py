"""The only SQL about state and the only blob files.

One file per noun. Its functions take the connection of a running transaction (`database.write` and `database.read` give
it), do one thing, and decide nothing. Every look-up of a caller's name takes the team's id, so that no team sees
another's rows; further steps with a row that was found use its id alone. The SQL is plain, as SQLite and PostgreSQL
both accept it, with named parameters.
"""
