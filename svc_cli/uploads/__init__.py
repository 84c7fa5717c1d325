"""The engine behind `upload`, `import`, `sync` and the tools: files and URLs into a bucket.

ignores      pure: the rules of a folder's ignore files
skips        which files are left out, by name and by state, and the title of each
selections   paths as given to the list of files, each with its title
contents     the bytes of a file that held still while it was read
decisions    pure: what the bucket holds and what is on disk to what is done
items        what became of each file, and the exit code that follows
transfers    files on their way: alone, through a session, or together as a batch
queues       many transfers at a time, packed and sent as they come
runs         all files: read ahead, sent in parallel, then waited for until they are ready
imports      URLs, which the service fetches by itself
"""
