"""The HTTP handlers. A handler parses a request, calls one operation and responds."""
