"""PostgreSQL as the engine of the state, shared by any number of nodes. Only imported where it is chosen.

`servers` opens connections, `statements` translates what the store says, `functions` gives the database the functions
that SQLite has and PostgreSQL lacks, `readers` is the pool for reads, `database` has the single writer of a node, and
`sessions` has its locks and its notices to other nodes.
"""
