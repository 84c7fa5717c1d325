"""The connections of clients to the server."""
