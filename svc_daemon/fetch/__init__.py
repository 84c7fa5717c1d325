"""Sends all requests to URLs that users supply: imports, web pages and webhooks.

This machine may reach hosts that the user must not reach. So every request and redirect takes these steps:

 1. `core.access.urls` parses the URL strictly.
 2. `connections` looks up the name once. If `core.access.urls` refuses any of its addresses, the URL is refused.
 3. It connects to a checked address. The name is never resolved again, so DNS rebinding has no effect.
 4. `responses` counts the bytes, received and decoded, and passes them on in small pieces.

One deadline covers all steps. Proxy, certificate and netrc settings of the environment are ignored. Error messages
never repeat what the remote host sent.

httpx is not used: it decodes each chunk at once, and 64 KiB of gzip, as one read returns, can become 67 MB. It also
logs every URL.
"""
