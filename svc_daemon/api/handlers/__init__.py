"""Handlers, a module per noun: parse, call one verb, present. Each module ends with its endpoints."""
