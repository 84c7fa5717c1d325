"""Exports of buckets: one file with all that a bucket contains, to be imported elsewhere.

`docs/reference/exports.md` describes the format. `manifests` and `archives` know it, `writing` exports a bucket,
and `adding` imports one.

An export is canonical: its content allows one sequence of bytes only. So two exports of the same content are equal, and
whatever differs from what `svc` would have written for a manifest is refused: links, devices, sparse files, names of
other files, doubled or missing members, trailing bytes.

An export may be a stranger's. Nothing of it becomes a path. It is read to its end before anything is changed: sizes,
hashes, and all fields against the limits of the service. The service receives only bytes and descriptive fields, and
extracts the text from the bytes itself.
"""
