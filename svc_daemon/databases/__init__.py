"""Access to SQLite and PostgreSQL: a single writer that commits in groups, and reads that each see one snapshot.

`contract` is the interface that operations and the store use. `sqlite` implements it for an installation on one machine
and for the files of the embedded search index, and `postgres` for a cluster.
"""
