"""Embedding: turns text into vectors with the model that the operator chose.

A local model is installed once, then loaded at each start:

 1. `origins` finds the model: a package, a wheel, a folder or a file.
 2. `installing` checks it, builds its ONNX graph if needed, and moves it into the data directory.
 3. `model_process` runs it in a process of its own, so that a crash in native code doesn't stop the service.
 4. `local_embedders`, in the daemon, starts that process and sends it texts.

`server_embedders` uses an embedding server instead. It doesn't use `fetch`, which refuses private networks.

Only `onnx_graphs` and `onnx_inference` import the libraries of the extra `semantic`, so that the daemon runs
without them.
"""
