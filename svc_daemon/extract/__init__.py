"""Extract text and its positions from files, in a sandbox ("cage").

Each stored file is parsed by a child process that handles only this document. The children are forked from a small
server process (`fork_server`), which starts with an empty environment and shares only one socket with the daemon. Only
this process forks, watches, kills and reaps children, so it never kills a process id that was reused. Each child
restricts itself (`children`), reads the file from standard input with the extractor for its format (`formats`), splits
it into chunks (`core.text.chunking`) and writes JSON lines (`messages`). The daemon's side is `cages.Extractor`: it
opens the file, passes on the file and pipe descriptors, limits the size of the reply and explains failures.

The daemon itself never imports a parser. Only the daemon imports `cages`, so the fork server needs no event loop.
"""
