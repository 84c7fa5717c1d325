"""`svc mcp`: the tools of `svc_daemon.tools` on this machine, and the files that they may read."""
