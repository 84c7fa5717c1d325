"""Access to SQLite and PostgreSQL: one writer that commits in groups, and reads that each see one snapshot."""
