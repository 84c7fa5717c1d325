"""The byte stores in S3, with the same interface as the folders of a data directory, for any number of nodes.

    blobs/<last two characters of the source id>/<source id>/<name>
                                                           the bytes of a source
    parts/<moment>/<session id>/<offset>-<size>-<nonce>…   some bytes of an open upload session

`<moment>` is the time at which the session was created.

No name is ever used twice: names contain 80 or 128 random bits. So objects are never replaced, two nodes can't disturb
each other, and a request may be sent again if its answer was lost. S3 never shows an object in part; once the store has
acknowledged it, it is durable. Listings must show an object as soon as it is acknowledged, as S3 and all current
S3-compatible stores do.

- A blob is stored before its row is committed. If the node is killed in between, no row names the blob, and it is
  deleted when it is old (`operations.sweeping.sweep_objects`).
- Objects that no row names are not moved to another place: they stay where they are until they are old. If an older
  copy of the state database is restored in the meantime, its rows have their objects again.
- The received bytes of a session are computed from a listing (`core.uploads.chains`). A node only remembers hashes, so
  that it doesn't have to read the bytes again.
"""
