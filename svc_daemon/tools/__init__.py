"""The MCP tools: their arguments, the API calls that they make, and their results.

Two servers offer the tools: the daemon's `/mcp` (`svc_daemon.api.mcp`) and `svc mcp` (`svc_cli.tools`). Each server has
its own `ToolService`, which calls the API with the caller's key, so that all checks and errors of the API apply.
"""
