"""Handlers about the service itself: its state, its metrics, and the console in the browser."""
