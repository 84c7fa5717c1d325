"""The settings and limits of the daemon. It reads them from environment variables when it starts."""
