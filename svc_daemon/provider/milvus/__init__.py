"""The search provider on Milvus, for installations of more than one machine.

`server` connects to Milvus and is the only user of pymilvus, and `schema` defines the collections. `editions` says
which rows of a document are seen: read it first. `writing` stores, changes and removes documents, `packing` converts
them to rows, with the words as `stems` has them, and `embeddings` stores vectors. `searching` finds chunks: `settling`
lets it see whole documents only, `chunks` reads them, and `counts` caches how common a word is. `inspecting` is for
`svc-daemon verify`.
"""
