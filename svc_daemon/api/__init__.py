"""The HTTP API, built on Starlette: routes, middleware, and handlers that parse, call one operation and respond."""
