"""The rules of a request to create a batch: 1 to 100 files, and a manifest that describes the same files."""

from collections import Counter

from svc_daemon.core.json_bodies import refusal, refusals
from svc_daemon.settings.limits import Limits
from svc_daemon.wire.batches import DESCRIPTION, BatchFields


def join_files(body: BatchFields, limits: Limits) -> None:
    """Move what `files` says of each file into the manifest's item with the same client_file_id.

    Raises `invalid_request` unless both have the same client_file_ids, without duplicates, and say the same of a file.
    Also raised if there are no files or too many files.
    """
    named = [item.client_file_id for item in body.manifest.items]
    sent = [file.client_file_id for file in body.files]
    if not 1 <= len(sent) <= limits.batch_files:
        raise refusal("files", f"must hold 1 to {limits.batch_files} files, not {len(sent)}.")
    for path, listed in (("manifest.items", named), ("files", sent)):
        if doubled := [name for name, count in Counter(listed).items() if count > 1]:
            raise refusal(path, f"client_file_id {doubled[0]!r} occurs more than once.")
    if odd := sorted(set(named) ^ set(sent)):
        raise refusal("files", f"client_file_id {odd[0]!r} is not in both the manifest and the files.")
    items = {item.client_file_id: item for item in body.manifest.items}
    for place, file in enumerate(body.files):
        item = items[file.client_file_id]
        for name in sorted(file.model_fields_set.intersection(DESCRIPTION)):
            value = getattr(file, name)
            if name in item.model_fields_set and getattr(item, name) != value:
                raise refusal(f"files.{place}.{name}", "differs from the one in the manifest; send one of the two.")
            setattr(item, name, value)


def refuse_unhashed(body: BatchFields) -> None:
    """Raise `invalid_request` unless every file has a `sha256`, by which damaged files in a pack are detected."""
    lacking = [f"manifest.items.{place}.sha256" for place, item in enumerate(body.manifest.items) if not item.sha256]
    if lacking:
        raise refusals([(path, "is required for a pack.") for path in lacking])
