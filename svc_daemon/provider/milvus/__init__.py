"""The search provider that uses Milvus, for installations on more than one machine.

Read `editions` first: it explains which of a document's rows are seen by searches. `server` connects to Milvus and is
the only module that uses pymilvus; `schema` defines the collections. `writing` stores, changes and removes documents,
`packing` converts them to rows, `stems` computes the word stems to index, and `embeddings` stores vectors. `searching`
finds chunks; for that, `settling` leaves out incomplete documents, `chunks` reads the rows of chunks, and `counts`
caches how common a word is. `inspecting` is for `svc-daemon verify`.
"""
