"""The language model that writes answers, if one is configured: a client for any server with OpenAI's chat API.

The rest of the daemon imports `contract`; `clients` sends the requests, and is imported only if a server is configured;
`streams` reads the response. The operator chooses the server's address, so the fetch policy for users' URLs does not
apply. Redirects are not followed and no proxy is used, since requests contain documents and a key.
"""
