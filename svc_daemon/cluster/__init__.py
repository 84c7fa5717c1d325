"""More than one machine: PostgreSQL for the state, S3 for the bytes, Milvus for the index, and what their nodes share.

`engines` opens it, for `server.engines` and commands; readers of the local service need not read this folder.
"""
