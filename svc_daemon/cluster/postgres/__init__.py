"""The state database on PostgreSQL, for any number of nodes. Only imported if PostgreSQL is configured."""
