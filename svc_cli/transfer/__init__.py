"""Uploads files and imports URLs into a bucket.

globs        matches text with glob patterns, in linear time (pure functions)
ignores      matches paths against a folder's ignore files (pure functions)
skips        decides which files of a folder are left out, and what title each file gets
selections   expands the given paths to a list of files with their titles
contents     reads and hashes files, and detects files that change before they are sent
decisions    compares a file with the bucket's sources and decides what to do (pure functions)
items        records the result for each file, and computes the exit code
transfers    sends one file, or several as a batch
queues       groups files and sends several groups at a time
runs         reads ahead, sends in parallel, then waits until all sources are ready
imports      asks the service to fetch URLs
"""
