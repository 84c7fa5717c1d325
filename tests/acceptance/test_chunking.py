"""How a bucket's documents are cut, changed from the command line."""

from tests.acceptance.installations import Installation, wait_until

TEXT = "# Quays\n\n" + "The umber quay was built of grey stone. " * 120


def _sizes(installation: Installation, source_id: str) -> list[int]:
    with installation.client() as client:
        chunks = client.get(f"/v1/sources/{source_id}/text").json()["chunks"]
    return [len(chunk["text"]) for chunk in chunks]


def test_a_bucket_is_cut_anew_and_found_meanwhile(shared_installation: Installation) -> None:
    svc = shared_installation.svc
    (shared_installation.root / "quays.md").write_text(TEXT)
    uploaded = svc("upload", "quays.md", "-b", "inbox", "--json")
    source_id = uploaded.json["items"][0]["source_id"]
    before = _sizes(shared_installation, source_id)
    changed = svc("bucket", "set", "inbox", "--chunk-size", "250", "--name", "In")
    assert changed.exit == 0
    assert changed.stdout == "changed inbox; 1 sources are being cut again\n"

    def is_cut() -> bool:
        found = svc("search", "umber", "-b", "inbox", "--json")
        assert found.json["data"][0]["source_id"] == source_id
        store = svc("bucket", "show", "inbox", "--json").json["bucketStore"]
        return bool(store["rechunking_member_count"] == 0)

    wait_until(is_cut, "it is cut anew")
    after = _sizes(shared_installation, source_id)
    assert max(after) <= 275 < max(before)
    shown = svc("bucket", "show", "inbox").stdout
    assert ("250" in shown, "In" in shown, "to be cut" in shown) == (True, True, False)


def test_what_makes_no_sense_is_refused(shared_installation: Installation) -> None:
    svc = shared_installation.svc
    svc("bucket", "create", "outbox", "--chunk-size", "500", "--chunk-overlap", "50")
    assert svc("bucket", "show", "outbox", "--json").json["chunking"] == {
        "target": 500,
        "min": 400,
        "max": 550,
        "overlap": 50,
    }
    assert svc("bucket", "set", "outbox").exit == 2
    assert svc("bucket", "set", "outbox", "--chunk-size", "9").exit == 2
    refused = svc("bucket", "set", "outbox", "--chunk-size", "200", "--chunk-overlap", "150", "--json")
    assert (refused.exit, refused.json["error"]["code"]) == (3, "invalid_request")
    would = svc("bucket", "set", "outbox", "--chunk-size", "200", "--dry-run")
    assert would.stdout == "would change outbox\n"
    assert svc("bucket", "set", "outbox", "--chunk-overlap", "10").exit == 0
    chunking = svc("bucket", "show", "outbox", "--json").json["chunking"]
    assert (chunking["target"], chunking["overlap"]) == (500, 10)
