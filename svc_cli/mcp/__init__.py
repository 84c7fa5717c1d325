"""Runs the tools of `svc mcp`, and controls which local files they can read."""
