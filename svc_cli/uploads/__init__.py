"""The upload of files, folders and globs, by phase.

ignores      what a folder's ignore files leave out
selections   paths as given to the list of files, each with its title
readings     the bytes of a file that held still while it was read
decisions    pure: what the bucket holds and what is on disk to what is done
deliveries   one file: read, decide, say what is to be sent
shipments    pure: which files go together, and by which door
lines        what all sendings share
singles      a file by itself, in one call or through a session
batches      up to a hundred files together
sendings     one shipment by its door
crews        threads that a main thread can wait for without harm
dispatches   many files at a time, packed and sent as they come
runs         all files: in parallel, then waiting until they are ready
imports      URLs, which the service fetches by itself
summaries    what became of each, counted
"""
