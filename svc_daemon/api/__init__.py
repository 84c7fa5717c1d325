"""HTTP with Starlette: the URL map, the layers around it, and handlers that parse, call one operation and respond."""
