"""The engines that keep rows: a single writer that commits in groups, and reads that each see one snapshot.

`contract` is what operations and the store use. `sqlite` is the engine of an installation on one machine, and of the
files of the embedded search index.
"""
