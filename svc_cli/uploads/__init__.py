"""The upload of files, folders and globs, by phase.

ignores      what a folder's ignore files leave out
selections   paths as given to the list of files, each with its title
readings     the bytes of a file that held still while it was read
decisions    pure: what the bucket holds and what is on disk to what is done
deliveries   one file: read, decide, send
runs         all files: in parallel, then waiting until they are ready
summaries    what became of each, counted
"""
