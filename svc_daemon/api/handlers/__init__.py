"""Handlers, one module per noun: parse the request, call one operation, respond. Each ends with its endpoints."""
