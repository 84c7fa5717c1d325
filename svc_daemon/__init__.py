"""The daemon: stores uploaded files and web pages, makes them searchable, and reports when they are searchable.

Layers
------
A module imports only from layers below its own, as `tests/rules/layers.py` enforces:

    command                          the command line of `svc-daemon`, one module for each group of commands
      offline                        backup, restore, verify and upgrades: under the lock, without the server
       server                        creates all components, serves, and shuts down; `server.engines` opens the stores
        api | workers                HTTP requests | background loops
         operations                  apply a policy, then run one transaction: `shared`, which the others use,
                                     `ingest`, `index`, `retrieve`, `remove`, and a module for each other noun
          process                    shared state in memory: open stores, clock, rate limits, locks, wake-up events
           store, provider, extract, SQL and blobs | the search index | bytes to text |
           embed, fetch, llm         text to vectors | requests to URLs given by users | the model that writes answers
            databases                engines that keep rows: one writer that commits in groups, and many readers
            data_directory           the data directory's folders and its lock
            child_processes          processes for work that may crash: parsers and models
             core                    pure decisions without I/O or clock: text, answers, search, uploads, access
              errors                 domain errors, with the error code and HTTP status of each
               tools, settings, exits, logs
                wire, paths          the HTTP contract | where things are

`cluster` has what a cluster needs of several of these layers; `server.engines` alone opens it, by `cluster.engines`.

The command line, `svc_cli`, imports only `wire`, `paths` and `tools`.

The life of an upload
---------------------
 1. `api` checks the request and its API key. `api.forms` streams the file to a staging file and hashes it. Clients can
    also send resumable parts (`operations.ingest.sessions`), or a hundred files at once (`operations.ingest.batches`).
 2. `operations.ingest.files` returns the stored response if the idempotency key was used before, else checks the rate
    limits.
 3. The staging file is renamed to the source's id, then the file and its folder are fsynced.
 4. One transaction writes the idempotency key with its response, the source, its buckets, and its task. Then the client
    receives 201.
 5. `workers.indexing` claims the task: this counts an attempt, takes a lease, and issues the token that every later
    write must present. Small documents of a team are claimed together.
 6. `extract` reads the bytes in a child process, and splits the text into chunks.
 7. `provider.embedded` commits text and chunks to the team's index. Searches can't see them yet.
 8. One transaction makes the source `active` in its buckets. It is `ready` now, and a source that it replaces leaves
    the bucket. `workers.embedding` adds vectors later.
 9. If the buckets change, `workers.syncing` writes them to the index; then one transaction makes them active.
10. `operations.retrieve.searches` searches the buckets that the API key, the request and the agent's policy all allow.
    It keeps only hits that are visible according to the state.

Invariants
----------
* A source whose creation was answered with 2xx exists, and becomes `active` or `failed`, even if processes are killed.
* Each row has its blob, and after the sweeper has run, each blob has its row.
* Retries with the same idempotency key return the same source.
* A source is `ready` if and only if its text and its buckets are in the index, and searches of its bucket find it.
* A deleted source is invisible from the moment the delete is answered; the index is cleaned up later.
* All unfinished work has an owner, an attempt number and a deadline.
* A source without text is never `ready`.
* Each citation mark in an answer refers to text of a source.

So no second process writes a database, and the daemon has a single writer connection. No path contains a user's file
name. Parsers and models run only in child processes. `core` reads no clock and no random numbers.

Events
------
The transaction that makes a transition also writes it to the event log (`operations.shared.events`). Clients read the
log, or follow it as a stream. A webhook call carries the id of its event.

Clusters
--------
Several daemons can share PostgreSQL for the state, an S3 store for the bytes and Milvus for the index. Conflicting
transactions are run again (`cluster.postgres.database`).

State and index
---------------
`state.db` is small and can't be replaced. `index/<team>.db` is large, and can be rebuilt from the blobs. They can't be
committed together, so the index is written first, and only the state decides what is visible. Documents that only the
index has are never returned, and are swept later.

A restored state may be older than the files. So at startup, stored bytes without a row are moved aside, not deleted.

`workers.rebuilding` rebuilds an index that is damaged, or if the operator requests it. It extracts every source again.
Until then, the team's searches are refused and no source is `ready`.

New chunking settings of a bucket only split its documents again. Until the new chunks are ready, the old ones stay
visible, and the sources stay ready.
"""
