"""The MCP tools of two servers: the daemon's `/mcp`, and `svc mcp`.

The tools call the API with the caller's key, so all checks and errors of the API apply.
"""
