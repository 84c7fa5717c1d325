"""The handlers, one module per noun: they parse a request, call one operation and respond."""
