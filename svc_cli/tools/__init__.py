"""Runs the tools of `svc_daemon.tools` for `svc mcp`, and controls which local files they may read."""
