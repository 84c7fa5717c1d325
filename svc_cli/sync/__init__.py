"""Folder sync: makes a bucket match a folder.

mappings   what to sync: a folder, its bucket, its filters and a name; and those added with `svc watch add`
index      an SQLite cache of the last run's files and unfinished batches
plan       decides what to do, from disk, index and bucket (pure functions)
safety     decides whether it is safe to remove the sources of deleted files (pure functions)
comparing  compares the files on disk with the index, and yields what to do about each, moved ones included
run_state  the options, the state and the report of one sync, shared by all its steps
apply      carries out each change: sends files in batches, and waits for the sources
removing   removes the sources of deleted files
syncs      runs one sync, of the whole folder or of some paths
watch      syncs folders whenever their files change

The folder determines what the bucket should contain. The index only saves work; a lost index is rebuilt.
"""
