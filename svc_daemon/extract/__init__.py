"""Extracts text and its positions from files, in child processes with few rights (the "cage").

- `cages`, in the daemon, copies a job's files into one unnamed file and sends it to the fork server.
- `fork_server` forks, watches, kills and reaps the children. No other process does, so it never kills a reused process
  id. It has an empty environment and shares only one socket with the daemon.
- `children` restrict themselves, then read documents (`formats`), split the text and reply in JSON lines (`messages`).
- A child reads one document, or a wave: up to 64 small ones of one team whose formats need no third-party parser
  (`waves`). Each document has its own limits, and gets its reply before the next one begins.
- If the child ends early, the document it was reading fails, and later ones count as not read (`child_replies`).

The daemon imports no parser. Only the daemon imports `cages`, so the fork server needs no event loop.
"""
