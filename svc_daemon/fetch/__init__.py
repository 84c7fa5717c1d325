"""Sends all requests to URLs that users supply: imports, web pages and webhooks.

A URL comes from a user, and this machine may reach hosts that the user must not reach. So every request, and every
redirect, goes through these steps:

 1. `core.access.urls` parses the URL strictly, or refuses it.
 2. `resolvers` looks up the name once. `core.access.addresses` checks every address. If one is refused, the URL is
    refused, because a name with both public and private addresses is probably an attempt to bypass the policy.
 3. `connections` opens a socket to one of the checked addresses. The name is used only in the TLS handshake and the
    Host header; it is never resolved again, so DNS rebinding has no effect.
 4. `responses` counts the bytes, both on the wire and decoded, and passes them on in small pieces.

One deadline covers all steps. The environment is ignored: no proxy, certificate or netrc settings are read. Connections
are neither kept alive nor shared between callers. Error messages never repeat what the remote host sent.

httpcore, the part of httpx that implements HTTP, is used directly: httpx would decode a whole chunk at once, whatever
its size, and log every URL.

Other packages need only `Fetcher`.
"""
