"""The only SQL about state and the only blob files.

One file per noun. Its functions take the connection of a running transaction (`database.write` and `database.read` give
it), do one thing, and decide nothing. Every look-up by what a caller named takes the team's id, so that nobody is shown
another team's things; what goes on from a row that was found so names it by its id alone. The SQL is plain: what SQLite
and PostgreSQL both take, with named parameters.
"""
