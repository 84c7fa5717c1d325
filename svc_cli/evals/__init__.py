"""Measures search quality for `svc eval`."""
