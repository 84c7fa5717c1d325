"""More than one machine: PostgreSQL for the state, S3 for the bytes, Milvus for the index, and what their nodes share.

Only `server.engines` opens it; who reads the local service need not read this folder.
"""
