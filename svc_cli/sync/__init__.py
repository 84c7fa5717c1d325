"""Folder sync: brings a folder into a bucket, by phase.

mappings     a folder, its bucket, its filters and its name
locks        one sync of a mapping at a time
snapshots    the folder as it is: a streamed walk, with what was left out and why
ignoring     which rule leaves out a path
index        what the last run knew: a row a file, a row a batch on its way, facts of the mapping
plan         pure: disk, index and bucket to what is to be done
doubts       pure: what keeps files that are gone in the bucket, by cause
safety       pure: whether the folder is there, and how much may be taken out of the bucket at a time
comparing    the walk held against the index: one change a file, as it is met
holdings     what the bucket has of the mapping, asked for where the index may be behind it
sending      bytes on their way: batches that are written down before they are sent
changing     what is done about one file
ending       waiting, and taking out what is gone
runs         one run from lock to report
reports      what became of each file, counted

The disk decides what the bucket shall hold; the index only saves work. It may be lost at any time: the bucket's own
sources (their title is the path, their `mapping` says whose they are) make it again. What was sent is written into the
index before it is sent, so that a run that was killed is finished by the next one.
"""
