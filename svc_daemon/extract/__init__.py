"""Extracts text and its positions from files, in child processes with few rights (the "cage").

- `extractors`, in the daemon, sends files to the fork server and receives the results.
- `fork_server` forks, watches, kills and reaps the children. It has an empty environment and one socket to the daemon.
- `confined_children` restrict themselves, read documents (`formats`), split the text and reply (`messages`).
- A child reads one document or a wave: up to 64 small ones of one team. Each document has its own limits.
- If a child ends early, the document it was reading fails, and later documents count as not read (`jobs`).

The daemon imports no parser, and the fork server doesn't import `extractors`.
"""
