"""The search provider that uses Milvus, for installations on more than one machine.

Read `editions` first: it explains which rows of a document a search sees.
"""
