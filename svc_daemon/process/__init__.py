"""In-memory state that all operations and workers share; `server` creates it once."""
