"""The files of stored bytes: blobs, parts of open sessions, packs, staging, copies and backups."""
