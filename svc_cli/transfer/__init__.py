"""Uploads files and imports URLs into a bucket, and writes what is downloaded.

globs         matches text with glob patterns, in linear time (pure functions)
ignores       matches paths against a folder's ignore files (pure functions)
rooted_files  opens files of a folder so that no link leads out of it
skips         decides which files of a folder are left out, and what title each file gets
snapshots     walks a folder, and yields its files
selections    expands the given paths to a list of files with their titles
contents      reads and hashes files, and detects files that change before they are sent
uploads       compares files with the bucket's sources, decides what to do with each, and reads ahead
transfers     sends one file, or several as a batch
queues        groups files and sends several groups at a time
runs          runs tasks in parallel, then waits until all sources are ready
imports       asks the service to fetch URLs
reports       the result for each file, the counts and the exit code
downloads     checks downloaded bytes, and replaces a file only when all have arrived
"""
