"""Bytes to text with places, inside a cage.

A stored file is read by a child process that lives for this one document. The children are forked from a small server
process of our own (`fork_server`), started with an empty environment and nothing of the daemon's but one socket; it
forks, watches and reaps, so that it alone kills, and never a process id that has become another's. Each child
confines itself (`children`), reads the file from standard input with the extractor of its format (`formats`), chunks
it (`core.chunking`) and writes JSON lines (`messages`). The daemon's side is `cages.Extractor`: it opens the file,
hands both descriptors over, counts what comes back and says why where nothing did.

Nothing that parses is ever imported by the daemon itself, and nothing here imports `cages` for the others: the fork
server carries no event loop.
"""
