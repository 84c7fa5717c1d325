"""What lives in this process's memory and is shared by all operations and workers; `server` makes it, once."""
