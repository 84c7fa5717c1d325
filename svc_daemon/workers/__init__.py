"""The only loops: indexing, bucket sync, sweeping, cascades, deliveries, rebuilds, usage, embedding.

Each waits, works, repeats.

When a worker wakes:

    indexing    a source was created, retried or requeued; a slot became free; a pause ended; a lease ran out
    syncing     an indexing completed; a source was attached or detached; a rebuild, a pause or a lease ended
    sweeping    something was deleted or replaced; the look-round time (`sweeping.ROUND_S`) has passed
    cascading   the deletion of a bucket was asked for; a pause ended; a lease ran out
    delivering  a source became ready or failed; a call ended; a pause ended; one was asked for again
    rebuilding  a rebuild was asked for; an index was found damaged; a pause ended; a lease ran out
    counting    an answer or a search was given
    embedding   an index has new chunks; another model was installed; a pause ended; the look-round time

While something is short they wait for its end, over which `process.shortages` watches; what makes room, sweeping and
cascading, goes on.

State is in the database, never in a loop: a worker that dies is replaced by the next start.
"""
