"""In-memory state that all operations and workers share. `server` creates one `Context` at startup."""
