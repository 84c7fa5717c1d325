"""Exports made by hand, whole or broken: a manifest, and the members that follow it."""

import hashlib
import io
import tarfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from svc_cli.exports.archives import Archive, read_archive
from svc_cli.exports.manifests import canonical

Member = tuple[tarfile.TarInfo, bytes]
BUCKET: dict[str, Any] = {"slug": "shelf", "name": "Shelf", "description": "", "metadata": {}, "chunking": None}


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def plain(name: str, data: bytes, **fields: Any) -> Member:
    """A plain file as `svc` writes it, but for these fields."""
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in fields.items():
        setattr(info, key, value)
    return info, data


def file_entry(title: str, data: bytes, **fields: Any) -> dict[str, Any]:
    """A source without text, as a manifest has it."""
    described: dict[str, Any] = {"title": title, "filename": title, "content_type": "text/markdown"}
    described |= {"tags": [], "metadata": {}, "mapping": None, "bytes": digest(data), "text": None, "vectors": None}
    return {**described, **fields}


@dataclass
class Handmade:
    """An export that a test may change before it is written."""

    manifest: dict[str, Any]
    members: list[Member]
    #: Changes the bytes of the manifest.
    rewrite: Callable[[bytes], bytes] = field(default=lambda data: data)

    @classmethod
    def of(cls, *files: tuple[str, bytes], text: str = "some text", **fields: Any) -> "Handmade":
        """The export of these files; they all have one text, and these fields."""
        entries = [{**file_entry(title, data, text=digest(text.encode())), **fields} for title, data in files]
        contents = {f"bytes/{digest(data)}": data for _, data in files} | {
            f"texts/{digest(text.encode())}": text.encode()
        }
        manifest = {
            "format": "svc-bucket",
            "version": 1,
            "bucket": dict(BUCKET),
            "model": None,
            "sources": sorted(entries, key=canonical),
            "questions": [],
            "members": {name: len(data) for name, data in contents.items()},
        }
        return cls(manifest, [plain(name, data) for name, data in sorted(contents.items())])

    def with_vectors(self, data: bytes, **model: Any) -> "Handmade":
        """The same with these vectors for each source, of a model with these fields."""
        for entry in self.manifest["sources"]:
            entry["vectors"] = digest(data)
        self.manifest["sources"].sort(key=canonical)
        self.manifest["model"] = {"name": "small@1", "dimension": 2, **model} if model else None
        self.manifest["members"][f"vectors/{digest(data)}"] = len(data)
        self.members.append(plain(f"vectors/{digest(data)}", data))
        return self

    def write(self) -> bytes:
        head = self.rewrite(canonical(self.manifest) + b"\n")
        checksum = f"{digest(head)}  manifest.json\n".encode()
        return packed([plain("manifest.json", head), plain("manifest.json.sha256", checksum), *self.members])


def packed(members: Iterable[Member], **options: Any) -> bytes:
    """A tar of these members, written by `tarfile`."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", **{"format": tarfile.USTAR_FORMAT, **options}) as tar:
        for info, data in members:
            tar.addfile(info, io.BytesIO(data))
    return file.getvalue()


def read(data: bytes) -> Archive:
    return read_archive(io.BytesIO(data), lambda _: None)
