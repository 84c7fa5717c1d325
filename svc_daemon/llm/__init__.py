"""The model that writes answers, where the operator has set one: a client of any server that speaks OpenAI's chat.

`contract` is what the rest of the house knows; `clients` speaks HTTP, and is imported only where a server is set;
`streams` reads what comes back. The address is the operator's own, so the policy for users' URLs has no say in it;
redirects are not followed, and no proxy of the environment is used, since the request carries documents and a key.
"""
