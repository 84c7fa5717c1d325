"""The one door to other hosts: imports, pages and webhooks all go through it.

A URL comes from a user, and this machine may reach what the user may not. So a request goes like this, and a redirect
goes the whole way again:

 1. `core.access.urls` reads the URL in one strict way, or refuses it.
 2. `resolvers` asks once for the name's addresses. `core.access.addresses` judges every one of them: one refused
    address refuses the URL, since a name that mixes public and private ones is made to slip through.
 3. `connections` opens a socket to one of these very addresses. The name goes into the TLS handshake and the Host
    header only, so nothing is asked a second time and an answer that changes in between changes nothing.
 4. `bodies` counts what arrives, on the wire and decoded, and hands it on in small pieces.

A deadline of its own runs over all of that. Nothing of the environment is read: no proxy, no certificates, no netrc. No
connection is kept, none is shared between two callers. Nothing the other side said stands in an error.

httpcore, the part of httpx that speaks HTTP, is used directly: httpx would decode a whole chunk at once, whatever comes
out of it, and log every URL.

`Fetcher` is all that others need.
"""
