"""The model that writes answers, where the operator has set one: a client of any server with OpenAI's chat API.

The rest of the daemon imports `contract`; `clients` sends the requests, and is imported only where a server is set;
`streams` reads the response. The address is the operator's own, so the policy for users' URLs does not apply to it.
Redirects are not followed and no proxy is used, since the request carries documents and a key.
"""
