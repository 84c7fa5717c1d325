"""The composition root: opens the engines, the sockets and the server, runs until a signal, and shuts down."""
