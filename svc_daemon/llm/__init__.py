"""The language model that writes answers, if one is configured: a client for servers with OpenAI's chat API.

The operator chooses the server's address, so the fetch policy for users' URLs does not apply.
"""
