"""PostgreSQL as the engine of the state, shared by any number of nodes. Only imported where it is chosen.

`servers` opens connections, `statements` translates the store's statements, `functions` creates the functions that they
call and PostgreSQL lacks, `readers` is the pool for reads, `database` has the single writer of a node, and `sessions`
has its locks and its notices to other nodes.
"""
