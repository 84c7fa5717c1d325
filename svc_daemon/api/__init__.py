"""The HTTP API, built on Starlette: routes, middleware and handlers."""
