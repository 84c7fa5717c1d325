"""The background workers. Each repeats the loop in `runners`: work, then sleep until woken or until work is due.

What wakes each worker:
    indexing    a source was created, retried or requeued; a child process ended; a delay ended; a lease expired
    syncing     a source was attached, detached or renamed; a document was indexed with outdated buckets or title; a
                rebuild or a delay ended; a lease expired
    sweeping    something was deleted or replaced; its interval (`sweeping.ROUND_S`) has passed
    cascading   the deletion of a bucket was requested; a delay ended; a lease expired
    delivering  a source became ready or failed; a call ended; a delay ended; a redelivery was requested
    rebuilding  a rebuild was requested; an index was found damaged; a delay ended; a lease expired
    rechunking  a bucket's chunking options changed; a round left work undone
    counting    a question was answered, or a search was made
    embedding   an index has new chunks; another model was installed; a delay ended
    removing    the removal of a team was requested; a delay ended

A worker that isn't woken looks for work once a minute. During a shortage of memory, disk space or another resource (see
`process.shortages`), workers wait until it is over. Sweeping and cascading don't wait, because they free resources.

All lasting state is in the database, never in a worker: after a crash, the next start continues the work.
"""
