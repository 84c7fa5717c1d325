"""The byte stores on S3: the same contract as the folders of a data directory, for any number of nodes.

    blobs/<last two characters of the source id>/<source id>/<name>
                                                           the bytes of a source
    parts/<moment>/<session id>/<offset>-<size>-<nonce>…   some bytes of an open upload session

No name is ever used twice: names contain 80 or 128 random bits. So objects are never replaced, two nodes can't disturb
each other, and a request that is sent again after a lost answer does no harm. An object exists whole or not at all, and
is durable once the store has acknowledged it. Listings must show an object as soon as it is acknowledged, as those of
S3 and of all current S3 stores do.

- A blob is stored before its row is committed. If the node is killed in between, no row names the blob, and it is
  deleted when it is old (`operations.sweeping.sweep_objects`).
- Nothing is moved aside: an object that no row names stays where it is until then. If an older copy of the state
  database is restored meanwhile, its rows find their objects again.
- The received bytes of a session are computed from a listing (`core.uploads.chains`). What a node remembers only saves
  it from reading bytes again to hash them.
"""
