"""State in this process's memory that all operations and workers share; `server` creates it once."""
