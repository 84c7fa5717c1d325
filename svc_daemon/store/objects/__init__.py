"""The byte stores in S3, for any number of nodes.

    blobs/<last two characters of the source id>/<source id>/<name>   the bytes of a source
    parts/<creation time>/<session id>/<offset>-<size>-<nonce>…       some bytes of an open upload session

- Random names are never used twice. So objects are never replaced, and requests can be sent again.
- An object that S3 has acknowledged is complete, durable and listed.
- A blob is stored before its row. After a crash in between, it is deleted once it is old (`operations.sweeping`).
- Until then, it stays in place, so that the rows of a restored database find it.
- A session's received bytes are computed from a listing (`core.uploads.chains`).
"""
