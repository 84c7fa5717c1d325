"""The one door to other hosts: imports, pages and webhooks all go through it.

A URL comes from a user, and this machine may reach what the user may not. So each request, and each redirect, takes
these steps:

 1. `core.access.urls` parses the URL in one strict way, or refuses it.
 2. `resolvers` looks the name up once. `core.access.addresses` checks every address: one refused address refuses the
    URL, since a name that mixes public and private ones is an attempt to slip through.
 3. `connections` opens a socket to one of these very addresses. The name goes into the TLS handshake and the Host
    header only, so nothing is asked a second time and an answer that changes in between changes nothing.
 4. `responses` counts what arrives, on the wire and decoded, and passes it on in small pieces.

One deadline covers all of them. Nothing of the environment is read: no proxy, no certificates, no netrc. No connection
is kept or shared between callers. No error repeats what the other side sent.

httpcore, the part of httpx that implements HTTP, is used directly: httpx would decode a whole chunk at once, whatever
its size, and log every URL.

`Fetcher` is all that others need.
"""
