"""`svc mcp`: the tools of `svc_daemon.wire.tools` on this machine, and the files that they may read."""
