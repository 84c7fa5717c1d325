"""Exports a bucket to a file, and imports such files. `docs/reference/exports.md` describes the format.

manifests, archives   read and write the file
exporting             exports a bucket
importing             imports an export into a bucket

An export may come from a stranger. So an import checks the whole file before it changes anything, and uses no text in
the file as a path.
"""
