"""Embedding: turns text into vectors with the model that the operator chose.

A local model is installed once, then loaded at each start:

 1. `origins` finds the model: a package, a wheel, a folder or a file.
 2. `installing` checks its hashes, builds its ONNX graph unless it has one, runs it once, and moves it into the data
    directory.
 3. `children` runs it in a process of its own, so that a crash in native code doesn't stop the service.
 4. `processes` is the daemon's side: it starts that process, sends it texts and restarts it.

`servers` uses an embedding server instead (OpenAI's `/v1/embeddings`). It doesn't use `fetch`, which refuses private
networks, where such a server usually is.

Only `weights`, `graphs` and `runtimes` import the libraries of the extra `semantic`. They are imported late, so that
the daemon runs without them.
"""
