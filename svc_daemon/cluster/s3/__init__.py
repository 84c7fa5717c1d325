"""Stores blobs and upload parts in S3, for any number of nodes.

    blobs/<last two characters of the source id>/<source id>/<name>   the bytes of a source
    parts/<creation time>/<session id>/<offset>-<size>-<nonce>…       some bytes of an open upload session

- Each object has a new random name. So objects are never replaced, and a request can be sent again.
- An object that S3 has acknowledged is complete, durable and listed.
- A blob is stored before its row in the database. After a crash in between, the blob has no row.
- The sweeper deletes objects without a row only once they are old, because a restored database may have their rows.
- A session's received bytes are computed from a listing (`cluster.s3.parts`).
"""
