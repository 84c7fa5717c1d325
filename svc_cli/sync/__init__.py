"""Folder sync: makes a bucket match a folder.

mappings     what to sync: a folder, its bucket, its filters and a name
snapshots    walks the folder, and yields its files
index        an SQLite cache of the last run's files and unfinished batches
plan         decides what to do, from disk, index and bucket (pure functions)
moved_files  recognizes moved and renamed files by their bytes
safety       decides whether it is safe to remove the sources of deleted files (pure functions)
comparing    compares the files on disk with the index, and yields what to do about each
reports      the result for each file, and the counts
runs         the options and the state of one sync, shared by all its steps
sending      sends files in batches
apply        carries out each change, and waits for the sources
removing     removes the sources of deleted files
syncs        runs one sync, of the whole folder or of some paths

The folder determines what the bucket should contain. The index only saves work; a lost index is rebuilt.
"""
