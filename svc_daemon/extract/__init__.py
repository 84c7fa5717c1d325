"""Extract text and its positions from files, in a sandbox ("cage").

Stored files are parsed by child processes. A child handles a single document, or a wave: up to 64 small ones of one
team, in formats that are read with code of ours alone (`waves`). The children are forked from a small server process
(`fork_server`), which starts with an empty environment and shares only one socket with the daemon. Only this process
forks, watches, kills and reaps children, so it never kills a process id that was reused. Each child restricts itself
(`children`), reads from standard input with the extractor for each document's format (`formats`), splits the text into
chunks (`core.text.chunking`) and writes JSON lines (`messages`).

The life of a wave: the daemon's side (`cages.Extractor`) reads the files into one unnamed file and passes it on with a
pipe for the replies. The child notes in shared memory which document it begins (`progress`), reads it, and replies
before it begins the next one. The limits of time, and of the size of a reply, are each document's own. What ends a
child (a limit, a parser that dies, a damaged reply) fails the document at hand, and the daemon returns those after it
as not read (`jobs`). Nothing of a wave outlives its child but the replies that the daemon has received.

The daemon itself never imports a parser. Only the daemon imports `cages`, so the fork server needs no event loop.
"""
