"""Bytes to text with places, inside a cage.

A stored file is read by a child process that lives for this one document. The children are forked from a small server
process (`fork_server`), started with an empty environment and nothing of the daemon's but one socket. It alone forks,
watches, kills and reaps, so it never kills a process id that was reused. Each child confines itself (`children`),
reads the file from standard input with the extractor of its format (`formats`), chunks it (`core.text.chunking`) and
writes JSON lines (`messages`). The daemon's side is `cages.Extractor`: it opens the file, hands over both descriptors,
counts the bytes that come back and explains a failure.

The daemon itself never imports a parser. Only the daemon imports `cages`, so that the fork server has no event loop.
"""
