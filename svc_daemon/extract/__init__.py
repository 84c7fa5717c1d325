"""Extracts text and its positions from files, in child processes with few rights (the "cage").

A child reads a single document, or a wave: up to 64 small documents of one team, in formats that need no third-party
parser (`waves`). The children are forked from a small server process (`fork_server`), which starts with an empty
environment and shares only one socket with the daemon. Only this process forks, watches, kills and reaps children, so
it never kills a process id that was reused. Each child restricts itself (`children`), reads from standard input with
the extractor for each document's format (`formats`), splits the text into chunks (`core.text.chunking`) and writes JSON
lines (`messages`).

The life of a wave: in the daemon, `cages.Extractor` copies the files into one unnamed file, and sends its descriptor to
the fork server together with a pipe for the replies. The child records in shared memory which document it is about to
read (`progress`), and replies to each document before it begins the next one. Each document has its own time limits and
its own limit for the size of the reply. If the child ends early (because of a limit, a crashed parser or a damaged
reply), the document that it was reading fails, and the daemon reports the later ones as not read (`child_replies`).
After the child has ended, nothing of it remains but the replies that the daemon has received.

The daemon itself never imports a parser. Only the daemon imports `cages`, so the fork server needs no event loop.
"""
