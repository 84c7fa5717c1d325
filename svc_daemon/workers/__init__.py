"""The only loops: indexing, bucket sync, sweeping, cascades, deliveries. Each waits, works, repeats.

When a worker wakes:

    indexing    a source was created, retried or requeued; a slot became free; a pause ended; a lease ran out
    syncing     an indexing completed; a source was attached or detached; a pause ended; a lease ran out
    sweeping    something was deleted or replaced; the look-round time (`sweeping.ROUND_S`) has passed
    cascading   the deletion of a bucket was asked for; a pause ended; a lease ran out
    delivering  a source became ready or failed; a call ended; a pause ended; one was asked for again

State is in the database, never in a loop: a worker that dies is replaced by the next start.
"""
