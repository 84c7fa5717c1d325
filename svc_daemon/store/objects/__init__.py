"""The byte stores in S3, for any number of nodes.

    blobs/<last two characters of the source id>/<source id>/<name>   the bytes of a source
    parts/<creation time>/<session id>/<offset>-<size>-<nonce>…       some bytes of an open upload session

- Names are random and never used twice. So objects are never replaced, and a request can safely be sent again.
- An object that S3 has acknowledged is complete, durable and listed.
- A blob is stored before its row. After a crash in between, it has no row and is deleted once it is old
  (`operations.sweeping.sweep_objects`).
- Objects without a row aren't moved aside. If an older copy of the state database is restored, its rows find them.
- A session's received bytes are computed from a listing (`core.uploads.chains`).
"""
