"""Folder sync: makes a bucket match a folder.

mappings     a folder, its bucket, its filters and its name
snapshots    walks the folder, yields its files, and records what was left out and why
index        an SQLite cache of the last run's files and unfinished batches, with a lock for one sync at a time
plan         decides what to do, from disk, index and bucket (pure functions)
safety       decides whether it is safe to remove the sources of deleted files (pure functions)
comparing    compares the files on disk with the index, and yields what to do about each
reports      the result for each file, and the counts
runs         the options and the state of one sync, shared by all its steps
sending      records batches in the index, then sends them
apply        carries out each change, and waits for the sources
removing     removes the sources of deleted files
syncs        runs one sync from lock to report, of the whole folder or of touched paths

The folder determines what the bucket should contain; the index only saves work. If the index is lost, it is rebuilt
from the bucket's sources: a source's title is the file's path, and its `mapping` field names the mapping that owns it.
Batches are recorded in the index before they are sent, so that, if a run is killed, the next run finishes them.
"""
