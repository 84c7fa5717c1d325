"""Server-side handling of client connections, including the limit on their number."""
