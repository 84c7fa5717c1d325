"""The state database on PostgreSQL, which any number of nodes can share. Only imported if PostgreSQL is configured.

`servers` opens connections, `statements` translates the store's statements, `functions` creates SQL functions that the
statements call and PostgreSQL lacks, `readers` has the connections for reads, `database` has the single writer of a
node, and `sessions` has the node's locks and its messages to other nodes.
"""
