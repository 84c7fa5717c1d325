"""The daemon of svc."""
