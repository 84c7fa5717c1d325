"""The MCP tools: what each takes, the calls of the API that it is made of, and how it reports what came of them.

Two doors share them: the daemon's `/mcp` (`svc_daemon.api.mcp`) and `svc mcp` (`svc_cli.tools`). Each brings a
`ToolService`, its own way to the API with its caller's key, so that every check, gate and error of the API holds at
both.
"""
