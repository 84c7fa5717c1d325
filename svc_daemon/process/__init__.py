"""In-memory state that all operations and workers of a process share."""
