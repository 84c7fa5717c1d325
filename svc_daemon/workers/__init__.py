"""The background workers. Each worker does its work, then sleeps until it is woken or work is due.

What wakes each worker:

    indexing    a source was created or retried; a child process ended
    syncing     a source was attached, detached or renamed; a rebuild ended
    sweeping    something was deleted or replaced; ten seconds have passed
    deleting    the deletion of a bucket was requested
    delivering  a source became ready or failed; a webhook call ended; a redelivery was requested
    rebuilding  a rebuild was requested; an index was found damaged
    rechunking  a bucket's chunking options changed
    counting    a question was answered, or a search was made
    embedding   an index has new chunks; another model was installed
    removing    the removal of a team was requested
    refreshing  a page or a file from the web is due to be fetched again, or its schedule changed

Workers also wake when a delay ends or a lease expires, and once a minute. During a shortage of memory or disk space,
all workers wait except sweeping and deleting, which free disk space.

All lasting state is in the database, so after a crash the next start continues the work.
"""
