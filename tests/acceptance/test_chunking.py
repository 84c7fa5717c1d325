"""How a bucket's documents are cut, changed from the command line."""

from tests.acceptance.installations import Installation, wait_until

TEXT = "# Quays\n\n" + "The umber quay was built of grey stone. " * 120


def test_a_bucket_is_cut_again_and_found_meanwhile(shared_installation: Installation) -> None:
    svc = shared_installation.svc
    (shared_installation.root / "quays.md").write_text(TEXT)
    source_id = svc("upload", "quays.md", "-b", "inbox", "--json").json["items"][0]["source_id"]

    def longest() -> int:
        with shared_installation.client() as client:
            return max(len(chunk["text"]) for chunk in client.get(f"/v1/sources/{source_id}/text").json()["chunks"])

    def is_cut() -> bool:
        found = svc("search", "umber", "-b", "inbox", "--json")
        assert found.json["data"][0]["source_id"] == source_id
        store = svc("bucket", "show", "inbox", "--json").json["bucketStore"]
        return bool(store["rechunking_member_count"] == 0)

    before = longest()
    changed = svc("bucket", "set", "inbox", "--chunk-size", "250", "--name", "In")
    assert (changed.exit, changed.stdout) == (0, "changed inbox; 1 sources are being cut again\n")
    wait_until(is_cut, "it is cut again")
    assert longest() <= 275 < before
    shown = svc("bucket", "show", "inbox").stdout
    assert ("250" in shown, "In" in shown, "to be cut" in shown) == (True, True, False)


def test_what_makes_no_sense_is_refused(shared_installation: Installation) -> None:
    svc = shared_installation.svc

    def chunking() -> dict[str, int]:
        return dict(svc("bucket", "show", "outbox", "--json").json["chunking"])

    svc("bucket", "create", "outbox", "--chunk-size", "500", "--chunk-overlap", "50")
    assert chunking() == {"target": 500, "min": 400, "max": 550, "overlap": 50}
    assert svc("bucket", "set", "outbox").exit == 2
    assert svc("bucket", "set", "outbox", "--chunk-size", "9").exit == 2
    overlapping = ("--chunk-size", "200", "--chunk-overlap", "150")
    assert svc("bucket", "set", "outbox", *overlapping, "--json").failure == (3, "invalid_request")
    assert svc("bucket", "set", "outbox", "--chunk-size", "200", "--dry-run").stdout == "would change outbox\n"
    assert svc("bucket", "set", "outbox", "--chunk-overlap", "10").exit == 0
    assert (chunking()["target"], chunking()["overlap"]) == (500, 10)
