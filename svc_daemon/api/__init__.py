"""The only Starlette: the URL map, the layers around it, and handlers that parse, call one verb, and present."""
