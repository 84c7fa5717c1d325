"""Folder sync: brings a folder into a bucket.

mappings     a folder, its bucket, its filters and its name
snapshots    the folder as it is: a streamed walk, with what was left out and why
index        what the last run knew: rows for files and unfinished batches; one sync at a time
plan         pure: disk, index and bucket to what is to be done
safety       pure: what may leave the bucket, and what keeps files that are gone in it, by cause
comparing    the walk compared with the index: one change a file, as it is met
reports      what became of each file, counted
runs         the options and the state of one sync
sending      bytes on their way: batches that are written down before they are sent
apply        what is done about each change, and the wait for its source
removing     what is gone is taken out
syncs        one sync from lock to report, of the whole folder or of touched paths

The disk decides what the bucket shall contain; the index only saves work. If it is lost, it is rebuilt from the
bucket's sources: their title is the path, their `mapping` shows the owner. Batches are recorded in the index before
they are sent, so that the next run finishes those of a run that was killed.
"""
