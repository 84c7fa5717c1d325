"""Exports of buckets: a file with everything that a bucket contains, which can be imported elsewhere.

`docs/reference/exports.md` describes the format. `manifests` and `archives` read and write it, `exporting` exports a
bucket, `importing` imports one, and `vectors` offers the vectors of an export to the service.

An export is canonical: for the same content there is only one valid sequence of bytes. So two exports of the same
content are equal. An import refuses every file that `svc` would not have written: one with links, devices, sparse
files, unknown file names, duplicate or missing members, or trailing bytes.

An export may come from a stranger. Therefore no text in it is used as a path. Before anything is changed, the whole
file is read, and sizes, hashes and all fields are checked against the limits of the service. The service receives only
bytes and descriptive fields, and extracts the text from the bytes itself. Vectors are offered to the service, which
checks them before it uses any.
"""
