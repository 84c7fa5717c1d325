"""`svc bucket set` changes the sizes of a bucket's chunks, and refuses sizes that make no sense."""

from tests.acceptance.installations import Installation, wait_until

LONG_TEXT = "# Quays\n\n" + "The umber quay was built of grey stone. " * 120


def test_bucket_set_changes_the_chunking_and_splits_the_sources_again(shared_installation: Installation) -> None:
    svc = shared_installation.svc
    (shared_installation.root / "quays.md").write_text(LONG_TEXT)
    assert svc("upload", "quays.md", "-b", "inbox").exit == 0
    changed = svc("bucket", "set", "inbox", "--chunk-size", "250", "--name", "In")
    assert (changed.exit, changed.stdout) == (0, "changed inbox; 1 sources are being split again\n")
    wait_until(lambda: "to be split" not in svc("bucket", "show", "inbox").stdout, "the source is split again")
    shown = svc("bucket", "show", "inbox").stdout
    assert ("250" in shown, "In" in shown) == (True, True)


def test_bucket_set_rejects_invalid_chunking_and_keeps_the_old_values(shared_installation: Installation) -> None:
    svc = shared_installation.svc

    def chunking() -> dict[str, int]:
        return dict(svc("bucket", "show", "outbox", "--json").json["chunking"])

    svc("bucket", "create", "outbox", "--chunk-size", "500", "--chunk-overlap", "50")
    assert chunking() == {"target": 500, "min": 400, "max": 550, "overlap": 50}
    assert (svc("bucket", "set", "outbox").exit, svc("bucket", "set", "outbox", "--chunk-size", "9").exit) == (2, 2)
    overlapping = ("--chunk-size", "200", "--chunk-overlap", "150")
    assert svc("bucket", "set", "outbox", *overlapping, "--json").failure == (3, "invalid_request")
    assert svc("bucket", "set", "outbox", "--chunk-size", "200", "--dry-run").stdout == "would change outbox\n"
    assert svc("bucket", "set", "outbox", "--chunk-overlap", "10").exit == 0
    assert (chunking()["target"], chunking()["overlap"]) == (500, 10)
