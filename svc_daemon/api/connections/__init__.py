"""How the server handles the connections of clients, and limits their number."""
