"""The MCP tools: their arguments, the API calls that they make, and their results.

Two servers share them: the daemon's `/mcp` (`svc_daemon.api.mcp`) and `svc mcp` (`svc_cli.tools`). Each provides a
`ToolService` that calls the API with its caller's key, so that all checks and errors of the API apply to both.
"""
