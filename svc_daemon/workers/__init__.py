"""Background work of nine kinds, each in the loop of `runners`: work, rest until woken or due, repeat.

When a worker wakes:

    indexing    a source was created, retried or requeued; a slot became free; a pause ended; a lease ran out
    syncing     an indexing completed; a source was attached or detached; a rebuild, a pause or a lease ended
    sweeping    something was deleted or replaced; its time (`sweeping.ROUND_S`) has passed
    cascading   the deletion of a bucket was asked for; a pause ended; a lease ran out
    delivering  a source became ready or failed; a call ended; a pause ended; one was asked for again
    rebuilding  a rebuild was asked for; an index was found damaged; a pause ended; a lease ran out
    rechunking  a bucket's chunking changed; a round left something
    counting    an answer or a search was given
    embedding   an index has new chunks; another model was installed; a pause ended

Without any of these each looks for work once a minute. While something is short they wait for its end, which
`process.shortages` watches for; what makes room, sweeping and cascading, goes on.

State is in the database, never in a loop: a worker that dies is replaced by the next start.
"""
