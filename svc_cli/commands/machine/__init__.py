"""Commands about this machine: the daemon, credentials, settings, completion and help."""
