"""The daemon: takes knowledge in, makes it searchable, and reports truthfully when it is.

Bytes come in through `api`, are judged by `core`, made durable by `store`, turned into text by `extract`, made findable
by `provider`, moved along by `workers`, found again by search, and quoted by answers.

Layers
------
A folder is a layer, a file is a noun, a function is a verb; who knows one noun knows the house. Imports go down only,
and a test holds this table:

    command, model_command,          what the operator does: beside the service, or while nothing is served
    operators, offline, starting
      server, listening, serving, process_limits  puts the parts together; serves; stops
      api | workers                  HTTP on one side, the only loops on the other
        operations                   verbs: policy plus one transaction
         process                     what they share in memory: open stores, clock, rate limits, gates, wakes, shortages
          store, provider,           SQL and blobs; the search index; bytes to text; text to vectors; the one door to
          extract, embed, fetch,     users' URLs; the model that writes answers, where one is set. None of the six
          llm                        knows another
            database                 one SQLite file: its readers and its single writer
            directories              the data directory's folders and its lock
            interpreters             processes of our own, for what may crash: parsers and models
              core                   pure decisions, no I/O, no clock: text, answers, search, uploads, access
                errors               the table of codes
                  wire, tools, paths, settings, logs, exits

A library has one owner: starlette lives in `api`, SQL in `store` and `provider.embedded`, parsers in `extract`,
httpcore in `fetch`, httpx in `llm` and `embed`, mcp in `tools`. The command line, `svc_cli`, imports only `wire`,
`paths` and `tools`, the tools of MCP, which both programs offer.

The life of an upload
---------------------
 1. `api.layers.guards` looks at Host and Origin, `api.handlers.files` at key and capability; `api.forms` streams the
    part into a staging file (`store.blobs`) that counts and hashes as it goes.
 2. `operations.ingest` looks for a replay, then asks the rate limits (creates a second, bytes a minute).
 3. The blob is made durable: renamed to the source's id, file synced, folder synced.
 4. One transaction writes idempotency key with answer, source, membership and task. Then the client gets its 201.
 5. `workers.indexing` claims the task: the attempt is counted, a lease runs, a token fences every later write.
 6. `extract` has a child process read the blob and cut it into chunks with their places.
 7. `provider.embedded` commits text and chunks to the team's index. Nothing counts yet.
 8. One transaction makes the source `active` and its bucket syncs due.
 9. `workers.syncing` has the index name the source's buckets, then one transaction makes the membership active.
    That is the moment of `ready`; a source that this one replaces leaves the bucket in the same commit. Where there is
    a model, `workers.embedding` gives the chunks their vectors afterwards; nothing waits for these.
10. `operations.searches` asks the index, within what key, request and the agent's policy have in common
    (`operations.scopes`), then keeps only what is there according to the state, in one snapshot.

When a worker wakes is listed in `workers`.

What must hold
--------------
* A source that was answered with 2xx exists and becomes `active` or `failed`, whatever is killed, and when.
* No row without its blob; no blob without a row once the sweeper ran.
* One key, one source: a retry gets the same id.
* `ready` if and only if indexed, synced, and found by a search of its bucket.
* Deleted means gone from the moment the delete answers: the state decides, the index is cleaned behind it.
* Nothing is stuck: whatever is not terminal has an owner, an attempt number and a deadline.
* Nothing empty is ever ready.
* A mark in an answer leads to words of a source, no matter what wrote the answer.

What is absent on purpose: a second process that opens the databases, a connection that writes beside the writer, a path
made of a user's file name, a parser or a model in this process, a clock or a random number in `core`, module state
anywhere.

Two files, and state alone decides
----------------------------------
`state.db` is small and precious. `index/<team>.db` is large and can be made again from the blobs. They don't commit
together, so the index is written first and counts for nothing until the state does, and a delete takes effect in the
state at once. A kill between the two leaves a document that no search shows; the sweeper removes it.

The state may go backwards, too: an older copy is put back, or its log loses its end. So stored bytes that it doesn't
name are moved aside at a start, with their documents left in the index, and never deleted before days have passed.

An index that is damaged, or that the operator wants rebuilt, is made again by `workers.rebuilding` while uploads go on:
the file goes, every active source is read again under its own generation, and until the last one is there searches of
the team are refused and its sources are not `ready`, although their rows stay.

A bucket whose chunking changes has its documents cut again by `workers.rebuilding`. Their bytes are the same, so the
old pieces and the new ones are both right: a source names the generations of which a hit counts, and stays ready.
"""
