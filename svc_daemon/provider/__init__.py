"""The search provider: what makes documents findable, behind one contract.

`contract` is what every provider guarantees and `errors` what it may raise. `embedded` is the provider that comes
with the service: SQLite's FTS5, one index file per team. The state decides what exists and what is ready; a
provider only finds. Its content can be lost and made again from the stored files, so it holds nothing of its own.
"""
