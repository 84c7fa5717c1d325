"""The daemon: stores uploaded files and web pages, makes them searchable, and reports when they are.

`api` receives the bytes, `core` decides what is allowed, `store` makes the bytes durable, `extract` converts them to
text, and `provider` indexes the text. `workers` run these steps in the background. Searches find the text, and answers
quote it.

Layers
------
Each folder is a layer. A file is named after what it deals with, by the same noun in every layer; functions are verbs.
A module imports only from layers below its own, as `tests/rules/layers.py` enforces:

    command, backup_command, move_command, model_command
                                     the command line of `svc-daemon`
    backing_up, restoring, offline_move, cluster_repair
                                     `backup`; `restore`; `move`; `verify` on a cluster
    serve_command, operator_commands, offline_repair
                                     `serve`; `team`, `key` and so on, with or without a running daemon; `verify`
      server                         creates all components, serves, and shuts down
      engines                        what opens the stores: those of the data directory, or those of a cluster
      listening_socket, uvicorn_server, os_limits, service_managers
                                     the parts of `server` that deal with sockets, uvicorn and the operating system
      api | workers                  HTTP requests | background loops
        operations                   one module per noun: apply a policy, then run one transaction
         process                     shared state in memory: open stores, clock, rate limits, locks, wake-up events
          store, provider, extract,  SQL and blobs | the search index | bytes to text |
          embed, fetch, llm          text to vectors | requests to URLs given by users | the model that writes answers
            databases                engines that keep rows: one writer that commits in groups, and many readers
            data_directory           the data directory's folders and its lock
            child_processes          processes for work that may crash: parsers and models
              core                   pure decisions without I/O or clock: text, answers, search, uploads, access
                errors               domain errors, with the error code and HTTP status of each
                  wire, tools, paths, settings, logs, exits

Only one layer uses each library: `api` starlette, `store` and `provider.embedded` SQL, `extract` the parsers, `fetch`
httpcore, `llm` and `embed` httpx, `tools` mcp. The command line, `svc_cli`, imports only `wire`, `paths` and `tools`
(the MCP tools, which both programs offer).

The life of an upload
---------------------
 1. `api.layers.origin_guards` checks Host and Origin, and `api.handlers.files` the API key and its permissions.
    `api.forms` streams the file to a staging file (`store.blobs`), counting and hashing the bytes as they arrive.
    Clients can also send the bytes in resumable parts (`operations.uploads`), or those of up to a hundred files at once
    (`operations.packs`); then `operations.finalizing` continues at step 3.
 2. `operations.ingest` returns the stored response if the idempotency key was used before, else checks the rate limits.
 3. The blob is made durable: the file is renamed to the source's id, then the file and its folder are fsynced.
 4. One transaction writes the idempotency key with its response, the source, its memberships in buckets, and its task.
    Then the client receives 201.
 5. `workers.indexing` claims the task: this counts an attempt, takes a lease, and issues the fencing token that every
    later write must present. Small documents of a team that wait together are claimed as a wave, and go through the
    steps from here to 8 together.
 6. `extract` reads the blob in a child process, and splits the text into chunks, each with its location.
 7. `provider.embedded` commits the text and the chunks to the team's index. They are not visible to searches yet.
 8. One transaction makes the source `active`, and its memberships too if the buckets in the index are still those of
    the source. Now the source is `ready`. A source that it replaces leaves the bucket in the same transaction. If there
    is an embedding model, `workers.embedding` adds the vectors of the chunks later; nothing waits for them.
 9. If the buckets changed in between, or change later, `workers.syncing` writes them to the index; then one transaction
    makes the memberships active.
10. `operations.searches` searches the buckets that the API key, the request and the agent's policy all allow
    (`operations.scopes`). It keeps only hits that are visible according to the state, read in one snapshot.

`workers` lists what wakes each worker.

Invariants
----------
* A source whose creation was answered with 2xx exists, and becomes `active` or `failed`, even if processes are killed.
* Each row has its blob, and after the sweeper has run, each blob has its row.
* Retries with the same idempotency key return the same source.
* A source is `ready` if and only if its text and its buckets are in the index, and searches of its bucket find it.
* A deleted source is invisible from the moment the delete is answered; the index is cleaned up later.
* Nothing is stuck: all unfinished work has an owner, an attempt number and a deadline.
* A source without text is never `ready`.
* Each citation mark in an answer refers to text of a source, whatever the model wrote.

To keep these invariants, no second process writes a database (a backup only reads), all writes of the daemon use its
single writer connection, and it never uses a file name from a user in a path. Parsers and models run only in child
processes. `core` reads no clock and no random numbers, and there is no mutable module-level state.

Events
------
Each transition that a client can wait for is a row of the event log, which is written in the transaction that makes the
transition (`operations.events`). Clients read pages of the log, or follow it as a stream, which resumes after the last
event that they have. A webhook call has the id of its event.

Clusters
--------
Instead of the data directory, several daemons can share PostgreSQL for the state, an S3 store for the bytes and Milvus
for the index, behind the same interfaces. Each daemon has one writer there too; a transaction that conflicts with one
of another daemon is run again (`databases.postgres.database`).

State and index
---------------
`state.db` is small and can't be replaced. `index/<team>.db` is large, and can be rebuilt from the blobs. The two files
can't be committed together, so the index is written first, and only the state decides what is visible. A deletion takes
effect in the state at once. If the daemon is killed between the two commits, the index may contain a document that no
search returns; the sweeper removes it.

The state may also be older than the files, because a backup was restored or its write-ahead log was truncated.
Therefore, at startup, stored bytes without a row are moved aside instead of being deleted. They and their documents in
the index are kept for several days.

`workers.rebuilding` rebuilds an index if it is damaged or the operator requests it. It deletes the index file and
extracts every active source again under its current generation (the number of the extraction), while uploads continue.
Until it has finished, the team's searches are refused and its sources are not `ready`, although their rows remain.

If the chunking settings of a bucket change, `workers.rebuilding` also chunks its documents again. The bytes are
unchanged, so the old and the new chunks are both correct: the state records which generations of a source are visible,
and the source remains `ready`.
"""
