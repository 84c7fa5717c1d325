"""Connections: the server's side of each socket, and how many there may be."""
