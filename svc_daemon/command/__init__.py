"""The command line of `svc-daemon`, one module for each group of commands."""
